#include "store/offline.h"

#include <unistd.h>

#include "store/schema.h"

namespace atl::store {
namespace {

Result<Database> open_existing(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) return fail_errno("open", path);
  ATOLL_ASSIGN(Database database, Database::open(path));
  ATOLL_TRY(check_intact(database, path));
  return database;
}

}  // namespace

Result<Facts> inspect(const std::string& path) {
  ATOLL_ASSIGN(Database database, open_existing(path));
  Facts facts;
  ATOLL_ASSIGN(facts.schema, schema_of(database));
  if (facts.schema == 0) return facts;  // no tables yet
  ATOLL_ASSIGN(Statement query, database.prepare("SELECT id FROM sandboxes"));
  for (;;) {
    ATOLL_ASSIGN(bool more, query.step());
    if (!more) return facts;
    facts.sandboxes.push_back(query.text(0));
  }
}

Result<void> copy_database(const std::string& from, const std::string& to) {
  ATOLL_ASSIGN(Database source, open_existing(from));
  ATOLL_ASSIGN(Database target, create_private_database(to));
  ATOLL_ASSIGN(Copy copy, Copy::begin(source, target));
  constexpr int kAllPages = -1;
  ATOLL_ASSIGN(bool more, copy.step(kAllPages));
  if (more) return fail(ErrorCode::Internal, "the copy of " + from + " is not complete");
  return {};
}

}  // namespace atl::store
