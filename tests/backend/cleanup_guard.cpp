#include "cleanup_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "os/cgroup_tree.h"

namespace atl::test {
namespace {

constexpr int kRounds = 500;
constexpr int kRoundMs = 20;

void end_sandboxes(os::CgroupTree& cgroups) {
  for (int round = 0; round < kRounds; round++) {
    auto groups = cgroups.groups();
    if (groups.empty()) break;
    for (const std::string& group : groups) {
      (void)cgroups.kill(group);
      for (pid_t pid : cgroups.processes(group)) kill(pid, SIGKILL);
      (void)cgroups.remove(group);
    }
    poll(nullptr, 0, kRoundMs);  // the kernel still takes them apart
  }
  cgroups.remove_tree();
}

[[noreturn]] void guard(int alive, const std::string& cgroup, const std::string& directory) {
  prctl(PR_SET_NAME, "backend-guard");
  setsid();  // a Ctrl-C is for the test
  dup2(alive, 3);
  syscall(SYS_close_range, 4, ~0u, 0);
  char byte;
  while (read(3, &byte, 1) < 0 && errno == EINTR) {
  }
  auto layout = os::detect_cgroups();
  if (layout) {
    auto cgroups = os::CgroupTree::open(*layout, cgroup);
    if (cgroups) end_sandboxes(*cgroups);
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  _exit(0);
}

}  // namespace

CleanupGuard::CleanupGuard(std::string cgroup, std::string directory) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd listen(ends[0]);
  alive_.reset(ends[1]);
  pid_ = fork();
  EXPECT_GE(pid_, 0);
  if (pid_ == 0) {
    alive_.reset();
    guard(listen.get(), cgroup, directory);
  }
}

CleanupGuard::~CleanupGuard() {
  alive_.reset();
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

void CleanupGuard::leave_to_parent() {
  alive_.reset();
  pid_ = -1;
}

}  // namespace atl::test
