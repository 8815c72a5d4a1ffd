#include "store/store.h"

namespace atl::store {
namespace {

constexpr int64_t kVersion = 1;

Result<void> check_intact(Database& database, const std::string& path) {
  auto refuse = [&](const std::string& why) {
    return fail(ErrorCode::Internal,
                path + " is damaged (" + why +
                    "); it was left as it is: move it away, or restore a backup");
  };
  auto statement = database.prepare("PRAGMA quick_check(1)");
  if (!statement) return refuse(statement.error().message());
  auto row = statement->step();
  if (!row) return refuse(row.error().message());
  std::string verdict = *row ? statement->text(0) : "ok";
  if (verdict != "ok") return refuse(verdict);
  return {};
}

Result<void> migrate(Database& database, const std::string& path) {
  ATOLL_ASSIGN(Statement query, database.prepare("PRAGMA user_version"));
  ATOLL_TRY(query.step());
  int64_t version = query.integer(0);
  if (version > kVersion) {
    return fail(ErrorCode::NotSupported, path + " was written by a newer Atoll (schema " +
                                             std::to_string(version) +
                                             "); run that version, or move the file away");
  }
  if (version == kVersion) return {};
  return database.execute(
      "BEGIN IMMEDIATE;"
      "CREATE TABLE sandboxes (id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;"
      "PRAGMA user_version = 1;"
      "COMMIT;");
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const std::string& path) {
  ATOLL_ASSIGN(Database database, Database::open(path));
  ATOLL_TRY(check_intact(database, path));
  ATOLL_TRY(database.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"));
  ATOLL_TRY(migrate(database, path));
  ATOLL_ASSIGN(Statement put,
               database.prepare("INSERT INTO sandboxes (id, record) VALUES (?1, ?2) "
                                "ON CONFLICT (id) DO UPDATE SET record = excluded.record"));
  ATOLL_ASSIGN(Statement erase, database.prepare("DELETE FROM sandboxes WHERE id = ?1"));
  return std::unique_ptr<Store>(new Store(std::move(database), std::move(put), std::move(erase)));
}

Store::Store(Database database, Statement put, Statement erase)
    : database_(std::move(database)),
      put_(std::move(put)),
      erase_(std::move(erase)),
      worker_(std::make_unique<async::WorkerThread>(
          [this](const std::function<void()>& jobs) { return in_transaction(jobs); })) {}

Result<void> Store::in_transaction(const std::function<void()>& jobs) {
  Result<void> begun = database_.execute("BEGIN IMMEDIATE");
  jobs();  // each fails by itself where the transaction could not begin
  if (!begun) return begun;
  Result<void> committed = database_.execute("COMMIT");
  if (!committed) (void)database_.execute("ROLLBACK");
  return committed;
}

Result<std::map<std::string, std::string>> Store::load_sandboxes() {
  ATOLL_ASSIGN(Statement query, database_.prepare("SELECT id, record FROM sandboxes"));
  std::map<std::string, std::string> records;
  for (;;) {
    ATOLL_ASSIGN(bool more, query.step());
    if (!more) return records;
    records[query.text(0)] = query.text(1);
  }
}

Task<Result<void>> Store::put_sandbox(std::string id, std::string record) {
  auto step = [this, id = std::move(id), record = std::move(record)]() -> Result<void> {
    put_.bind(1, id);
    put_.bind(2, record);
    return put_.run();
  };
  co_return co_await worker_->run(std::move(step));
}

Task<Result<void>> Store::erase_sandbox(std::string id) {
  auto step = [this, id = std::move(id)]() -> Result<void> {
    erase_.bind(1, id);
    return erase_.run();
  };
  co_return co_await worker_->run(std::move(step));
}

}  // namespace atl::store
