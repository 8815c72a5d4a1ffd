#include "store/sqlite.h"

#include <fcntl.h>

#include "base/unique_fd.h"

namespace atl::store {

static Error sqlite_error(sqlite3* handle, int code, std::string_view what) {
  ErrorCode kind = ErrorCode::Internal;
  if ((code & 0xff) == SQLITE_FULL) kind = ErrorCode::NoSpace;
  if ((code & 0xff) == SQLITE_BUSY) kind = ErrorCode::Unavailable;
  std::string message(what);
  message.append(": ").append(handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code));
  return Error(kind, std::move(message));
}

void Statement::bind(int index, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), index, text.data(), text.size(), SQLITE_STATIC,
                      SQLITE_UTF8);
}

void Statement::bind(int index, int64_t value) {
  sqlite3_bind_int64(statement_.get(), index, value);
}

Result<bool> Statement::step() {
  int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return fail(sqlite_error(sqlite3_db_handle(statement_.get()), code, "database"));
}

Result<void> Statement::run() {
  auto stepped = step();
  reset();
  if (!stepped) return fail(std::move(stepped).error());
  return {};
}

std::string Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  int size = sqlite3_column_bytes(statement_.get(), column);
  return text == nullptr
             ? std::string()
             : std::string(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

Result<Database> Database::open(const std::string& path) {
  sqlite3* handle = nullptr;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  Database database;
  database.handle_.reset(handle);
  if (code != SQLITE_OK) return fail(sqlite_error(handle, code, "opening " + path));
  sqlite3_busy_timeout(handle, 5000);
  return database;
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return fail(sqlite_error(handle_.get(), code, sql));
  return Statement(statement);
}

Result<void> Database::execute(const std::string& sql) {
  int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail(sqlite_error(handle_.get(), code, sql));
  return {};
}

Result<Database> create_private_database(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return fail_errno("create", path);
  return Database::open(path);
}

Result<Copy> Copy::begin(Database& from, Database& to) {
  sqlite3* target = to.handle_.get();
  sqlite3_backup* backup = sqlite3_backup_init(target, "main", from.handle_.get(), "main");
  if (backup == nullptr) return fail(sqlite_error(target, sqlite3_errcode(target), "copying"));
  return Copy(backup);
}

Result<bool> Copy::step(int pages) {
  int code = sqlite3_backup_step(backup_.get(), pages);
  if (code == SQLITE_OK) return true;
  if (code == SQLITE_DONE) return false;
  // The connection's own message may be of an earlier failure.
  return fail(sqlite_error(nullptr, code, "copying the database"));
}

}  // namespace atl::store
