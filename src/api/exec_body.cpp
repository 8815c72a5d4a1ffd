#include "api/exec_body.h"

#include <signal.h>

#include <charconv>

namespace atl::api {
namespace {

constexpr int64_t kMaxTimeoutMs = int64_t{30} * 86400 * 1000;
// Under the kernel's own bound for one argument (128 KiB) and for all of them (a quarter of the
// stack limit), with a message instead of a bare E2BIG.
constexpr size_t kMaxArgument = 131071;
constexpr size_t kMaxArguments = 2u << 20;

Error bad(std::string_view field, std::string message) {
  return Error(ErrorCode::InvalidArgument, std::move(message)).with_field(field);
}

}  // namespace

Result<void> check_environment(const std::map<std::string, std::string>& env,
                               std::string_view field) {
  size_t total = 0;
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find('=') != name.npos || name.find('\0') != name.npos ||
        value.find('\0') != value.npos || value.size() > kMaxArgument) {
      return fail(bad(
          std::string(field) + "." + name.substr(0, 64),
          "a variable's name has no '=', neither part a NUL byte, the value at most 131071 bytes"));
    }
    total += name.size() + value.size();
  }
  if (total > kMaxArguments) return fail(bad(field, "all variables together have at most 2 MiB"));
  return {};
}

Result<void> check_argv(const std::vector<std::string>& argv, std::string_view field) {
  size_t total = 0;
  for (const std::string& argument : argv) {
    if (argument.find('\0') != argument.npos)
      return fail(bad(field, "an argument has no NUL byte"));
    if (argument.size() > kMaxArgument) {
      return fail(bad(field, "one argument has at most 131071 bytes; write a file and run that"));
    }
    total += argument.size();
  }
  if (total > kMaxArguments) return fail(bad(field, "all arguments together have at most 2 MiB"));
  return {};
}

std::vector<std::string> shell_argv(std::string command) {
  return {"/bin/bash", "-l", "-c", std::move(command)};
}

Result<void> read_surroundings(http::JsonObjectReader& reader, RunOptions& options) {
  ATOLL_ASSIGN(options.env, reader.string_map("env"));
  ATOLL_ASSIGN(auto cwd, reader.optional_string("cwd"));
  ATOLL_ASSIGN(auto user, reader.optional_string("user"));
  ATOLL_ASSIGN(auto timeout, reader.optional_integer("timeout", 0, kMaxTimeoutMs));
  ATOLL_ASSIGN(auto timeout_ms, reader.optional_integer("timeoutMs", 0, kMaxTimeoutMs));
  ATOLL_TRY(check_environment(options.env, "env"));
  options.cwd = cwd.value_or("");
  if (options.cwd.find('\0') != std::string::npos || options.cwd.size() > 4095) {
    return fail(bad("cwd", "a path has no NUL byte and at most 4095 bytes"));
  }
  options.user = user.value_or("");
  options.timeout = std::chrono::milliseconds(timeout_ms.value_or(timeout.value_or(0)));
  return {};
}

Result<RunOptions> read_run_options(http::JsonObjectReader& reader) {
  RunOptions options;
  ATOLL_ASSIGN(auto command, reader.optional_string("command"));
  ATOLL_ASSIGN(auto executable, reader.optional_string("executable"));
  ATOLL_ASSIGN(auto args, reader.string_array("args"));
  ATOLL_TRY(read_surroundings(reader, options));
  if (command.has_value() == executable.has_value()) {
    return fail(bad("command", "give either command (a shell string) or executable with args"));
  }
  if (command) {
    if (command->empty()) return fail(bad("command", "the command is empty"));
    if (!args.empty()) return fail(bad("args", "args go with executable, not with command"));
    options.label = command->substr(0, 1024);
    options.argv = shell_argv(std::move(*command));
    ATOLL_TRY(check_argv(options.argv, "command"));
    return options;
  }
  if (executable->empty()) return fail(bad("executable", "the executable is empty"));
  options.argv.push_back(std::move(*executable));
  for (std::string& argument : args) options.argv.push_back(std::move(argument));
  ATOLL_TRY(check_argv(options.argv, "args"));
  return options;
}

Result<int> parse_signal(std::string_view text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 1 && value < NSIG)
    return value;
  if (text.starts_with("SIG")) text.remove_prefix(3);
  for (int signal = 1; signal < 32; signal++) {
    if (text == sigabbrev_np(signal)) return signal;
  }
  return fail(bad("signal",
                  "no signal '" + std::string(text) + "'; use a name such as SIGTERM or a number"));
}

}  // namespace atl::api
