// How a verb ends badly: one line on standard error that says what to do, and an exit code.
#pragma once

#include <string>
#include <string_view>

#include "atoll/client.h"
#include "cli/command.h"

namespace atl::cli {

inline constexpr int kUsageError = 2;
inline constexpr int kOwnFailure = 125;  // ours, not the command's
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;
inline constexpr int kBrokenPipe = 141;  // as a shell sees SIGPIPE

// "<what> (<what to do>)" without "atoll: ".
std::string explain(const Error& error, std::string_view url);

// Print "atoll: ..." and return the code.
int report(const Error& error, std::string_view url = {});
int report_usage(std::string_view what);
// For a command that was to run in a sandbox: 127 and 126 where it could not be started.
int report_start(const Error& error, const std::string& command, std::string_view url);
int start_exit_code(const Error& error);

// The client that the flags and the environment ask for.
Result<Client> make_client(const Globals& globals);

// Runs `verb(client)`, an int or a Result<int>, and reports what fails.
template <class Verb>
int with_client(const Globals& globals, const Verb& verb) {
  auto client = make_client(globals);
  if (!client) return report(client.error(), globals.url);
  Result<int> code = verb(*client);
  return code ? *code : report(code.error(), client->url());
}

// Whole output to standard output.
void print_out(std::string_view text);
// A JSON document: indented on a terminal, one line in a pipe.
void print_json(std::string_view json);
std::string indent_json(std::string_view json);

}  // namespace atl::cli
