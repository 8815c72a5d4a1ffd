// Work on a database that no server has open: hold the data directory's lock, or own the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace atl::store {

struct Facts {
  int64_t schema = 0;
  std::vector<std::string> sandboxes;  // ids
};

// Refuses a missing and a damaged database.
Result<Facts> inspect(const std::string& path);

// A consistent copy in the new file `to`, with what is still in the write-ahead log.
Result<void> copy_database(const std::string& from, const std::string& to);

}  // namespace atl::store
