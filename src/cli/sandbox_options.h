#pragma once

#include <vector>

#include "atoll/client.h"
#include "cli/command.h"

namespace atl::cli {

// --cpu, --memory, --disk, --pids into `limits`, which must outlive the command.
std::vector<Option> limit_flags(Limits& limits);
// --timeout and the like, in whole seconds; "never" is 0.
Option seconds_flag(std::string flags, std::string help, std::optional<std::chrono::seconds>& into);
Option metadata_flag(std::map<std::string, std::string>& metadata);

// A sandbox as JSON or, for people, its name or id.
Result<int> print_sandbox(const Globals& globals, const Result<Sandbox>& sandbox);
std::string display_name(const Sandbox& sandbox);

}  // namespace atl::cli
