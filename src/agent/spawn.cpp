#include "agent/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "os/exec_filter.h"
#include "os/raw_clone.h"

namespace atl::agent {
namespace {

using Step = SpawnFailure::Step;

// Everything the child needs, prepared before the clone: it may not allocate.
struct ChildContext {
  const SpawnPlan& plan;
  const char* const* candidates;
  char* const* argv;
  char* const* envp;
  SpawnFailure failure;
};

[[noreturn]] void child_fail(ChildContext& context, Step step, int error) {
  context.failure = {.step = step, .error = error};
  for (;;) syscall(SYS_exit_group, 127);
}

void place_descriptor(ChildContext& context, int from, int to) {
  if (syscall(SYS_dup3, from, to, 0) < 0) child_fail(context, Step::Sandbox, errno);
}

void drop_capabilities(Profile profile) {
  // At exec, uid 0 gets what the bounding set holds and other users get nothing. The agent holds
  // the `dev` set plus SETPCAP, which only this line needs.
  if (profile == Profile::Strict) {
    for (int cap : {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL}) {
      syscall(SYS_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);
    }
    syscall(SYS_prctl, PR_CAPBSET_DROP, CAP_SETGID, 0, 0, 0);
    syscall(SYS_prctl, PR_CAPBSET_DROP, CAP_SETUID, 0, 0, 0);
  }
  syscall(SYS_prctl, PR_CAPBSET_DROP, CAP_SETPCAP, 0, 0, 0);
}

void become(ChildContext& context) {
  const Account& account = context.plan.account;
  drop_capabilities(context.plan.profile);
  if (account.uid == 0 && account.gid == 0) return;
  gid_t groups[] = {account.gid};
  if (syscall(SYS_setgroups, 1, groups) != 0 ||
      syscall(SYS_setresgid, account.gid, account.gid, account.gid) != 0 ||
      syscall(SYS_setresuid, account.uid, account.uid, account.uid) != 0) {
    child_fail(context, Step::Identity, errno);
  }
}

void restrict_system_calls(ChildContext& context) {
  sock_fprog program{.len = os::kExecFilterLength,
                     .filter = const_cast<sock_filter*>(os::kExecFilter)};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
    child_fail(context, Step::Sandbox, errno);
  }
}

[[noreturn]] void execute(ChildContext& context) {
  int error = ENOENT;
  for (const char* const* path = context.candidates; *path != nullptr; path++) {
    syscall(SYS_execve, *path, context.argv, context.envp);
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
  }
  child_fail(context, Step::Exec, error);
}

void child_main(void* argument) {
  auto& context = *static_cast<ChildContext*>(argument);
  const SpawnPlan& plan = context.plan;
  uint64_t no_signals = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, nullptr, sizeof no_signals);
  syscall(SYS_setsid);
  place_descriptor(context, plan.stdin_fd, 0);
  place_descriptor(context, plan.stdout_fd, 1);
  place_descriptor(context, plan.stderr_fd, 2);
  if (plan.controlling_terminal) syscall(SYS_ioctl, 0, TIOCSCTTY, 0);
  become(context);
  if (syscall(SYS_chdir, plan.cwd.c_str()) != 0) child_fail(context, Step::Directory, errno);
  restrict_system_calls(context);
  execute(context);
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

// The kernel should take a command before it takes the agent, whose death ends the sandbox. Done
// from here, while the command is starting: before its exec its /proc files are the host root's.
void prefer_for_oom_kill(pid_t pid) {
  char path[40];
  snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
  UniqueFd file(open(path, O_WRONLY | O_CLOEXEC));
  if (file.valid()) (void)!write(file.get(), "300", 3);
}

alignas(16) char child_stack[32 << 10];  // one child at a time: the clone waits for its exec

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

tl::expected<pid_t, SpawnFailure> spawn(const SpawnPlan& plan) {
  std::vector<std::string> candidates = executable_candidates(plan);
  std::vector<char*> candidate_list = pointers(candidates);
  std::vector<char*> argv = pointers(plan.argv);
  std::vector<char*> envp = pointers(plan.env);
  ChildContext context{.plan = plan,
                       .candidates = candidate_list.data(),
                       .argv = argv.data(),
                       .envp = envp.data(),
                       .failure = {}};
  clone_args args{};
  args.flags = CLONE_VM | CLONE_VFORK;
  args.exit_signal = SIGCHLD;
  args.stack = os::pointer_value(child_stack);
  args.stack_size = sizeof child_stack;
  if (plan.cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(plan.cgroup_fd);
  }
  long pid = os::clone3_call(args, child_main, &context);
  if (pid < 0) {
    return tl::make_unexpected(SpawnFailure{.step = Step::Clone, .error = static_cast<int>(-pid)});
  }
  if (context.failure.error != 0) {
    // It has ended already; SIGCHLD brings its reaping, like any stranger's.
    return tl::make_unexpected(context.failure);
  }
  prefer_for_oom_kill(static_cast<pid_t>(pid));
  return static_cast<pid_t>(pid);
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
