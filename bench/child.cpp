#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/unique_fd.h"
#include "stats.h"

namespace atl::bench {

Result<pid_t> start_child(const std::vector<std::string>& argv, const ChildOptions& options) {
  std::vector<char*> raw;
  for (const std::string& argument : argv) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  for (auto [fd, target] : {std::pair(options.stdout_fd, 1), std::pair(options.stderr_fd, 2)}) {
    if (fd >= 0) {
      posix_spawn_file_actions_adddup2(&actions, fd, target);
    } else {
      posix_spawn_file_actions_addopen(&actions, target, "/dev/null", O_WRONLY, 0);
    }
  }
  if (options.pass_fd >= 0) posix_spawn_file_actions_adddup2(&actions, options.pass_fd, 3);
  pid_t pid = 0;
  int error = posix_spawnp(&pid, raw[0], &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail(Error::from_errno(error, "start", argv[0]));
  return pid;
}

Result<int> wait_child(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) != pid) {
    if (errno != EINTR) return fail_errno("waitpid");
  }
  return status;
}

Result<int> stop_child(pid_t pid, double seconds) {
  kill(pid, SIGTERM);
  Stopwatch watch;
  int status = 0;
  for (pid_t ended; (ended = waitpid(pid, &status, WNOHANG)) != pid;) {
    if (ended < 0 && errno != EINTR) return fail_errno("waitpid");
    if (watch.seconds() > seconds) {
      kill(pid, SIGKILL);
      ATOLL_TRY(wait_child(pid));
      return fail(ErrorCode::Timeout,
                  "no end within " + std::to_string(static_cast<int>(seconds)) + " s of SIGTERM");
    }
    usleep(5'000);
  }
  return status;
}

Result<void> run_child(const std::vector<std::string>& argv, const ChildOptions& options) {
  ATOLL_ASSIGN(pid_t pid, start_child(argv, options));
  ATOLL_ASSIGN(int status, wait_child(pid));
  if (status == 0) return {};
  return fail(ErrorCode::Internal, argv[0] + " ended with status " + std::to_string(status));
}

Result<std::string> child_output(const std::vector<std::string>& argv) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  ATOLL_ASSIGN(pid_t pid, start_child(argv, {.stdout_fd = theirs.get()}));
  theirs.reset();
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ours.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  ATOLL_ASSIGN(int status, wait_child(pid));
  if (status != 0) return fail(ErrorCode::Unavailable, argv[0] + " failed");
  return text;
}

void become_subreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void reap_orphans(const std::vector<pid_t>& keep) {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    if (info.si_pid == 0 || std::find(keep.begin(), keep.end(), info.si_pid) != keep.end()) return;
    waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

}  // namespace atl::bench
