#include "agent/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
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

// From here to child_main the code runs in the child, beside the agent and in its memory: raw
// system calls, its own stack, nothing of the C library.

void Launch::child_fail(Step step, long error) {
  failure_ = {.step = step, .error = static_cast<int>(-error)};
  for (;;) raw_syscall(SYS_exit_group, 127);
}

// All that is the same for every command.
void Launch::child_prepare() {
  raw_syscall(SYS_setsid);
  drop_capabilities(profile_);
  sock_fprog program{.len = os::kExecFilterLength,
                     .filter = const_cast<sock_filter*>(os::kExecFilter)};
  long filtered = raw_syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
  if (filtered < 0) child_fail(Step::Sandbox, filtered);
}

void Launch::child_await_order() {
  for (;;) {
    int order = __atomic_load_n(&order_, __ATOMIC_ACQUIRE);
    if (order == Go) return;
    if (order == Leave) child_fail(Step::Sandbox, -ECANCELED);
    raw_syscall(SYS_futex, &order_, FUTEX_WAIT, Wait, nullptr);
  }
}

void Launch::child_place(int from, int to) {
  long result = raw_syscall(SYS_dup3, from, to, 0);
  if (result < 0) child_fail(Step::Sandbox, result);
}

void Launch::child_become() {
  const Account& account = plan_.account;
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
  self.child_prepare();
  self.child_await_order();
  // The descriptors were the agent's own until here: those of the command came after the child. An
  // empty range closes nothing; the call is made for the copy of the table.
  long copied = raw_syscall(SYS_close_range, ~0u, ~0u, CLOSE_RANGE_UNSHARE);
  if (copied < 0) self.child_fail(Step::Sandbox, copied);
  uint64_t no_signals = 0;
  raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, nullptr, sizeof no_signals);
  self.child_place(plan.stdin_fd.valid() ? plan.stdin_fd.get() : plan.null_fd, 0);
  self.child_place(plan.stdout_fd.get(), 1);
  self.child_place((plan.stderr_fd.valid() ? plan.stderr_fd : plan.stdout_fd).get(), 2);
  if (plan.controlling_terminal) raw_syscall(SYS_ioctl, 0, TIOCSCTTY, 0);
  self.child_become();
  long entered = raw_syscall(SYS_chdir, plan.cwd.c_str());
  if (entered < 0) self.child_fail(Step::Directory, entered);
  self.child_execute();
}

tl::expected<pid_t, SpawnFailure> Launch::prepare(Profile profile, int cgroup_fd) {
  profile_ = profile;
  clone_args args{};
  args.flags = CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID;
  args.exit_signal = SIGCHLD;
  args.child_tid = os::pointer_value(&child_tid_);
  args.stack = os::pointer_value(stack_);
  args.stack_size = sizeof stack_;
  if (cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(cgroup_fd);
  }
  child_tid_ = 1;  // the kernel clears it when the child leaves
  long pid = os::clone3_call(args, child_main, this);
  if (pid < 0) {
    child_tid_ = 0;
    return tl::make_unexpected(SpawnFailure{.step = Step::Clone, .error = static_cast<int>(-pid)});
  }
  pid_ = static_cast<pid_t>(pid);
  return pid_;
}

void Launch::give(Order order) {
  __atomic_store_n(&order_, order, __ATOMIC_RELEASE);
  raw_syscall(SYS_futex, &order_, FUTEX_WAKE, 1);
}

void Launch::begin(SpawnPlan plan) {
  plan_ = std::move(plan);
  candidates_ = executable_candidates(plan_);
  candidate_list_ = pointers(candidates_);
  argv_ = pointers(plan_.argv);
  envp_ = pointers(plan_.env);
  give(Go);
}

void Launch::dismiss() { give(Leave); }

// Not CLONE_VFORK: the sandbox's root can stop the child before it execs, or keep a lease on the
// file that it execs, and nothing would ever wake us.
void Launch::await_exec() {
  timespec limit{.tv_sec = kExecSeconds, .tv_nsec = 0};
  while (!left()) {
    long result =
        raw_syscall(SYS_futex, &child_tid_, FUTEX_WAIT, 1, limit.tv_sec > 0 ? &limit : nullptr);
    if (result != -ETIMEDOUT) continue;
    limit.tv_sec = 0;
    failure_ = {.step = Step::Exec, .error = ETIMEDOUT};
    kill(pid_, SIGKILL);
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
