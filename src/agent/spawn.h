// Starts one command. The child borrows our memory until it execs, so nothing is copied and a
// failed exec is reported through plain variables.
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

// One start. The child runs on its stack and reads its strings until finished(), so it must live
// that long.
class Launch {
 public:
  explicit Launch(SpawnPlan plan);
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  enum class Mode {
    UntilExec,  // returns when the command runs, or could not be made to
    AtOnce,     // returns while it is starting; a failure shows in failure() once it has ended
  };
  tl::expected<pid_t, SpawnFailure> run(Mode mode);

  // The child has left our memory: it execs or is gone.
  bool finished() const { return __atomic_load_n(&child_tid_, __ATOMIC_ACQUIRE) == 0; }
  const SpawnFailure& failure() const { return failure_; }
  const SpawnPlan& plan() const { return plan_; }

 private:
  static constexpr size_t kStack = 16u << 10;
  void await_exec(pid_t pid);
  static void child_main(void* launch);
  [[noreturn]] void child_fail(SpawnFailure::Step step, long error);
  void child_place(int from, int to);
  void child_become();
  [[noreturn]] void child_execute();

  SpawnPlan plan_;
  std::vector<std::string> candidates_;
  std::vector<char*> candidate_list_;
  std::vector<char*> argv_;
  std::vector<char*> envp_;
  SpawnFailure failure_;
  int child_tid_ = 0;
  alignas(16) char stack_[kStack];
};

// The kernel should take a command before it takes the agent, whose death ends the sandbox. Works
// once the command has execed: before that its /proc files are the host root's.
void prefer_for_oom_kill(pid_t pid);

// The value of NAME in a list of "NAME=value", or empty.
std::string_view env_value(const std::vector<std::string>& env, std::string_view name);

struct Pty {
  UniqueFd master;
  UniqueFd slave;
};
Result<Pty> open_pty(uint16_t cols, uint16_t rows, const Account& owner);
void resize_pty(int master, uint16_t cols, uint16_t rows);

}  // namespace atl::agent
