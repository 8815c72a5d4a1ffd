// The fields that say what to run, shared by every route that starts something.
#pragma once

#include "atoll/sandbox_session.h"
#include "http/json.h"

namespace atl::api {

Result<RunOptions> read_run_options(http::JsonObjectReader& reader);
// env, cwd, user and timeout: all but the command itself.
Result<void> read_surroundings(http::JsonObjectReader& reader, RunOptions& options);
Result<void> check_argv(const std::vector<std::string>& argv, std::string_view field);
Result<void> check_environment(const std::map<std::string, std::string>& env,
                               std::string_view field);
// A shell string as commands are started with it.
std::vector<std::string> shell_argv(std::string command);
// "SIGTERM", "TERM" or 15.
Result<int> parse_signal(std::string_view text);

}  // namespace atl::api
