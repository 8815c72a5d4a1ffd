// The database's tables, as the steps that led to them.
#pragma once

#include <cstdint>
#include <string>

#include "store/sqlite.h"

namespace atl::store {

// Refuses a damaged database; `path` is for the message.
Result<void> check_intact(Database& database, const std::string& path);

// The newest version this program knows.
int64_t newest_schema();

Result<int64_t> schema_of(Database& database);

// Brings an older database, or an empty one, to the newest version, a transaction a step. Refuses
// one from a newer program; `path` is for the message.
Result<void> migrate(Database& database, const std::string& path);

}  // namespace atl::store
