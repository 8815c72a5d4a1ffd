#include "agent/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>

#include "os/exec_filter.h"
#include "os/raw_clone.h"
#include "os/raw_syscall.h"

namespace atl::agent {
namespace {

using Step = SpawnFailure::Step;
using os::raw_syscall;

constexpr time_t kExecSeconds = 10;

void drop_capabilities(Profile profile) {
  // At exec, uid 0 gets what the bounding set holds and other users get nothing. The agent holds
  // the `dev` set plus SETPCAP, which only this needs.
  constexpr int kDev[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
                          CAP_KILL,  CAP_SETGID,       CAP_SETUID};
  if (profile == Profile::Strict) {
    for (int cap : kDev) raw_syscall(SYS_prctl, PR_CAPBSET_DROP, cap);
  }
  raw_syscall(SYS_prctl, PR_CAPBSET_DROP, CAP_SETPCAP);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> executable_candidates(const SpawnPlan& plan) {
  const std::string& name = plan.argv[0];
  if (name.find('/') != name.npos) return {name};
  std::vector<std::string> candidates;
  std::string_view path = env_value(plan.env, "PATH");
  while (!path.empty()) {
    size_t colon = path.find(':');
    std::string_view dir = path.substr(0, colon);
    if (!dir.empty()) candidates.push_back(std::string(dir) + "/" + name);
    if (colon == path.npos) break;
    path.remove_prefix(colon + 1);
  }
  return candidates;
}

}  // namespace

std::string_view env_value(const std::vector<std::string>& env, std::string_view name) {
  for (const std::string& entry : env) {
    std::string_view text = entry;
    if (text.size() > name.size() && text[name.size()] == '=' && text.starts_with(name)) {
      return text.substr(name.size() + 1);
    }
  }
  return {};
}

Launch::Launch(SpawnPlan plan)
    : plan_(std::move(plan)),
      candidates_(executable_candidates(plan_)),
      candidate_list_(pointers(candidates_)),
      argv_(pointers(plan_.argv)),
      envp_(pointers(plan_.env)) {}

// From here to child_execute the code runs in the child, beside the agent and in its memory: raw
// system calls, its own stack, nothing of the C library.

void Launch::child_fail(Step step, long error) {
  failure_ = {.step = step, .error = static_cast<int>(-error)};
  for (;;) raw_syscall(SYS_exit_group, 127);
}

void Launch::child_place(int from, int to) {
  long result = raw_syscall(SYS_dup3, from, to, 0);
  if (result < 0) child_fail(Step::Sandbox, result);
}

void Launch::child_become() {
  const Account& account = plan_.account;
  drop_capabilities(plan_.profile);
  if (account.uid == 0 && account.gid == 0) return;
  gid_t groups[] = {account.gid};
  long result = raw_syscall(SYS_setgroups, 1, &groups[0]);
  if (result == 0) result = raw_syscall(SYS_setresgid, account.gid, account.gid, account.gid);
  if (result == 0) result = raw_syscall(SYS_setresuid, account.uid, account.uid, account.uid);
  if (result < 0) child_fail(Step::Identity, result);
}

void Launch::child_execute() {
  long error = -ENOENT;
  for (char* const* path = candidate_list_.data(); *path != nullptr; path++) {
    long result = raw_syscall(SYS_execve, *path, argv_.data(), envp_.data());
    bool absent = result == -ENOENT || result == -ENOTDIR;
    if (!absent) error = result;
    if (!absent && result != -EACCES) break;
  }
  child_fail(Step::Exec, error);
}

void Launch::child_main(void* launch) {
  auto& self = *static_cast<Launch*>(launch);
  const SpawnPlan& plan = self.plan_;
  uint64_t no_signals = 0;
  raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, nullptr, sizeof no_signals);
  raw_syscall(SYS_setsid);
  self.child_place(plan.stdin_fd, 0);
  self.child_place(plan.stdout_fd, 1);
  self.child_place(plan.stderr_fd, 2);
  if (plan.controlling_terminal) raw_syscall(SYS_ioctl, 0, TIOCSCTTY, 0);
  self.child_become();
  long entered = raw_syscall(SYS_chdir, plan.cwd.c_str());
  if (entered < 0) self.child_fail(Step::Directory, entered);
  sock_fprog program{.len = os::kExecFilterLength,
                     .filter = const_cast<sock_filter*>(os::kExecFilter)};
  long filtered = raw_syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
  if (filtered < 0) self.child_fail(Step::Sandbox, filtered);
  self.child_execute();
}

tl::expected<pid_t, SpawnFailure> Launch::run(Mode mode) {
  clone_args args{};
  args.flags = CLONE_VM | CLONE_CHILD_CLEARTID;
  args.exit_signal = SIGCHLD;
  args.child_tid = os::pointer_value(&child_tid_);
  args.stack = os::pointer_value(stack_);
  args.stack_size = sizeof stack_;
  if (plan_.cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(plan_.cgroup_fd);
  }
  child_tid_ = 1;  // the kernel clears it when the child leaves
  long pid = os::clone3_call(args, child_main, this);
  if (pid < 0) {
    child_tid_ = 0;
    return tl::make_unexpected(SpawnFailure{.step = Step::Clone, .error = static_cast<int>(-pid)});
  }
  if (mode == Mode::UntilExec) await_exec(static_cast<pid_t>(pid));
  // One that has ended already is reaped like any stranger's.
  if (mode == Mode::UntilExec && failure_.error != 0) return tl::make_unexpected(failure_);
  return static_cast<pid_t>(pid);
}

// Not CLONE_VFORK: the sandbox's root can stop the child before it execs, or keep a lease on the
// file that it execs, and nothing would ever wake us.
void Launch::await_exec(pid_t pid) {
  timespec limit{.tv_sec = kExecSeconds, .tv_nsec = 0};
  while (!finished()) {
    int result = static_cast<int>(
        syscall(SYS_futex, &child_tid_, FUTEX_WAIT, 1, limit.tv_sec > 0 ? &limit : nullptr));
    if (result == 0 || errno != ETIMEDOUT) continue;
    limit.tv_sec = 0;
    failure_ = {.step = Step::Exec, .error = ETIMEDOUT};
    kill(pid, SIGKILL);
  }
}

void prefer_for_oom_kill(pid_t pid) {
  char path[40];
  snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
  UniqueFd file(open(path, O_WRONLY | O_CLOEXEC));
  if (file.valid()) (void)!write(file.get(), "300", 3);
}

Result<Pty> open_pty(uint16_t cols, uint16_t rows, const Account& owner) {
  Pty pty{.master = UniqueFd(open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)),
          .slave = UniqueFd()};
  if (!pty.master.valid()) return fail_errno("open", "/dev/pts/ptmx");
  int unlock = 0;
  if (ioctl(pty.master.get(), TIOCSPTLCK, &unlock) != 0) return fail_errno("unlock", "pty");
  // TIOCGPTPEER opens the other end without looking up a path that the sandbox could replace.
  pty.slave.reset(ioctl(pty.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.slave.valid()) return fail_errno("open", "the pty's other end");
  fchown(pty.slave.get(), owner.uid, static_cast<gid_t>(-1));
  resize_pty(pty.master.get(), cols, rows);
  return pty;
}

void resize_pty(int master, uint16_t cols, uint16_t rows) {
  winsize size{.ws_row = rows, .ws_col = cols, .ws_xpixel = 0, .ws_ypixel = 0};
  ioctl(master, TIOCSWINSZ, &size);
}

}  // namespace atl::agent
