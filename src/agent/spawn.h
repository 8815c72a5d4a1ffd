// Starts one command. The child borrows our memory until it execs (vfork semantics), so nothing
// is copied and a failed exec is reported through plain variables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/users.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "wire/agent_messages.h"

namespace atl::agent {

struct SpawnPlan {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value", complete
  std::string cwd;
  Account account;
  Profile profile = Profile::Dev;
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  bool controlling_terminal = false;
  int cgroup_fd = -1;  // -1: stay in ours
};

// What failed in the child, where it did: exec failures are the command's own (127, 126), the
// rest are errors of the request.
struct SpawnFailure {
  enum class Step : uint8_t { Clone, Identity, Directory, Exec, Sandbox } step = Step::Clone;
  int error = 0;
};

tl::expected<pid_t, SpawnFailure> spawn(const SpawnPlan& plan);

// The value of NAME in a list of "NAME=value", or empty.
std::string_view env_value(const std::vector<std::string>& env, std::string_view name);

struct Pty {
  UniqueFd master;
  UniqueFd slave;
};
Result<Pty> open_pty(uint16_t cols, uint16_t rows, const Account& owner);
void resize_pty(int master, uint16_t cols, uint16_t rows);

}  // namespace atl::agent
