#pragma once

#include <vector>

#include "cli/command.h"
#include "config/load.h"

namespace atl::cli {

// --config and a flag for every setting. `inputs` must live as long as the options.
std::vector<Option> config_options(config::Inputs& inputs);

// For verbs that work on the server's files themselves: what --data-dir says, or the server's own
// configuration where it says nothing.
inline constexpr const char* kDataDirHelp = "the server's (default: as configured)";
Result<std::string> data_dir_or_configured(const std::string& given);

}  // namespace atl::cli
