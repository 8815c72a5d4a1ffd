// Archives that come and go as one file.
#pragma once

#include <functional>
#include <string>

#include "atoll/client.h"
#include "cli/command.h"

namespace atl::cli {

// Writes what `download` sends to the new file `path`, which appears whole or not at all; returns
// its size.
Result<uint64_t> save_archive(const std::string& path,
                              const std::function<Result<uint64_t>(const ByteSink&)>& download);
int print_saved(const Globals& globals, const std::string& path, uint64_t bytes);

}  // namespace atl::cli
