#include "store/schema.h"

#include <array>

namespace atl::store {
namespace {

// Step n leads from version n to n + 1. A step that has been released is never changed: databases
// out there have taken it. New ones go to the end.
constexpr std::array kSteps = {
    // 1
    "CREATE TABLE sandboxes (id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;",
    // 2
    "CREATE TABLE documents (kind TEXT NOT NULL, tenant TEXT NOT NULL, id TEXT NOT NULL,"
    " body TEXT NOT NULL, PRIMARY KEY (kind, tenant, id)) WITHOUT ROWID;"
    "CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL,"
    " tenant TEXT NOT NULL, sandbox TEXT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL);"
    "CREATE INDEX events_by_sandbox ON events (sandbox, seq);",
};

Result<void> take_step(Database& database, size_t from) {
  std::string sql = "BEGIN IMMEDIATE;";
  sql.append(kSteps.at(from));
  sql.append("PRAGMA user_version = ").append(std::to_string(from + 1)).append("; COMMIT;");
  auto done = database.execute(sql);
  if (!done) (void)database.execute("ROLLBACK");
  return done;
}

}  // namespace

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

int64_t newest_schema() { return static_cast<int64_t>(kSteps.size()); }

Result<int64_t> schema_of(Database& database) {
  ATOLL_ASSIGN(Statement query, database.prepare("PRAGMA user_version"));
  ATOLL_TRY(query.step());
  return query.integer(0);
}

Result<void> migrate(Database& database, const std::string& path) {
  ATOLL_ASSIGN(int64_t version, schema_of(database));
  if (version > newest_schema()) {
    return fail(ErrorCode::NotSupported, path + " was written by a newer Atoll (schema " +
                                             std::to_string(version) +
                                             "); run that version, or move the file away");
  }
  for (auto from = static_cast<size_t>(version); from < kSteps.size(); from++) {
    auto taken = take_step(database, from);
    if (!taken) {
      return fail(std::move(taken).error().context("bringing " + path + " to schema " +
                                                   std::to_string(from + 1)));
    }
  }
  return {};
}

}  // namespace atl::store
