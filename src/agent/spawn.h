// Starts one command. The child borrows our memory until it execs, so nothing is copied and a
// failed exec is reported through plain variables. It may be made before there is a command: it
// then waits with all done that no command changes (docs/decisions/0007-waiting-child.md).
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
  // The child shares our descriptors until it copies them: they are kept until it has left.
  UniqueFd stdin_fd;  // none: /dev/null
  UniqueFd stdout_fd;
  UniqueFd stderr_fd;  // none: where stdout goes
  int null_fd = -1;
  bool controlling_terminal = false;
};

// What failed in the child, where it did: exec failures are the command's own (127, 126), the
// rest are errors of the request.
struct SpawnFailure {
  enum class Step : uint8_t { Clone, Identity, Directory, Exec, Sandbox } step = Step::Clone;
  int error = 0;
};

// One child and the command it becomes. The child runs on the stack in here and reads the strings
// until it has left, so this must live that long.
class Launch {
 public:
  Launch() = default;
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  // Makes the child. cgroup_fd -1: it stays in our cgroup.
  tl::expected<pid_t, SpawnFailure> prepare(Profile profile, int cgroup_fd);
  // Hands the waiting child its command. A failure shows in failure() once the child has left.
  void begin(SpawnPlan plan);
  // Ends a child that was never given a command.
  void dismiss();
  // Blocks until the child has left. One that does not get there in time is killed, which failure()
  // then says.
  void await_exec();

  // The child has left our memory: it execs or is gone.
  bool left() const { return __atomic_load_n(&child_tid_, __ATOMIC_ACQUIRE) == 0; }
  pid_t pid() const { return pid_; }
  const SpawnFailure& failure() const { return failure_; }
  const SpawnPlan& plan() const { return plan_; }

 private:
  static constexpr size_t kStack = 16u << 10;
  enum Order : int { Wait, Go, Leave };
  static void child_main(void* launch);
  [[noreturn]] void child_fail(SpawnFailure::Step step, long error);
  void child_prepare();
  void child_await_order();
  void child_place(int from, int to);
  void child_become();
  [[noreturn]] void child_execute();
  void give(Order order);

  Profile profile_ = Profile::Dev;
  SpawnPlan plan_;
  std::vector<std::string> candidates_;
  std::vector<char*> candidate_list_;
  std::vector<char*> argv_;
  std::vector<char*> envp_;
  SpawnFailure failure_;
  pid_t pid_ = 0;
  int order_ = Wait;
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
