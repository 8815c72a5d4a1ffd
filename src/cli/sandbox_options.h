#pragma once

#include <vector>

#include "atoll/client.h"
#include "cli/command.h"

namespace atl::cli {

// All write into what they are given, which must outlive the command.
// --cpu, --memory, --pids.
std::vector<Option> limit_flags(Limits& limits);
Option disk_flag(Limits& limits);
Option profile_flag(std::string& profile);
Option template_flag(std::string& name);
// --timeout and --idle-timeout, in whole seconds; "never" is 0.
Option lifetime_flag(std::optional<std::chrono::seconds>& into);
Option idle_flag(std::optional<std::chrono::seconds>& into);
// --delete-after, of a sandbox that is stopped.
Option delete_after_flag(std::optional<std::chrono::seconds>& into);
Option metadata_flag(std::map<std::string, std::string>& metadata);

// A sandbox as JSON or, for people, its name or id.
Result<int> print_sandbox(const Globals& globals, const Result<Sandbox>& sandbox);
std::string display_name(const Sandbox& sandbox);

}  // namespace atl::cli
