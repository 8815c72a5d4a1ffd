// What run and exec share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "atoll/client.h"
#include "cli/attach_loop.h"
#include "cli/command.h"

namespace atl::cli {

struct ExecOptions {
  bool interactive = false;
  bool terminal = false;
  std::map<std::string, std::string> env;
  std::string cwd;
  std::string user;
  std::chrono::milliseconds timeout{0};
  std::vector<std::string> command;
};

// -i, -t, -e, --cwd, --user, --timeout into `options`, which must outlive the command.
std::vector<Option> exec_flags(ExecOptions& options);
Option env_flag(std::map<std::string, std::string>& env);

// Starts the command and stays with it to its end.
struct ExecEnd {
  int exit_code = 0;
  AttachEnd::Kind kind = AttachEnd::Kind::Exited;
  int32_t pid = 0;
};
Result<ExecEnd> exec_in(Client& client, SignalWatch& signals, const std::string& sandbox,
                        const ExecOptions& options);

// Says so on standard error where a command was killed because its sandbox had no memory left.
void explain_kill(Client& client, const std::string& sandbox, int exit_code);

}  // namespace atl::cli
