#include "launcher/trash.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <memory>
#include <string_view>

#include "base/failpoint.h"
#include "base/random_id.h"
#include "os/btrfs.h"
#include "os/parent_death.h"
#include "os/remove_tree.h"
#include "os/syscalls.h"

namespace atl::launcher {
namespace {

using DirHandle = std::unique_ptr<DIR, int (*)(DIR*)>;

// A subvolume goes at once, whatever is in it.
void remove(int trash, const char* name) {
  if (os::btrfs::is_subvolume(trash, name) && os::btrfs::destroy_subvolume(trash, name)) return;
  os::remove_tree(trash, name);
}

// The kernel cleans a removed subvolume up after a commit, and frees its blocks in the next.
void hurry_space_back(int trash, int wake) {
  constexpr int kCommits = 3;
  constexpr int kPauseMs = 250;
  if (!os::btrfs::holds(trash)) return;
  for (int i = 0; i < kCommits; i++) {
    if (!os::btrfs::begin_commit(trash)) return;
    pollfd more{wake, POLLIN, 0};
    if (poll(&more, 1, kPauseMs) != 0) return;  // the next sweep ends with this, too
  }
}

// Whether there was anything.
bool sweep(int trash) {
  bool any = false;
  // Until a pass finds nothing: more comes while we go.
  for (bool found = true; found;) {
    found = false;
    UniqueFd copy(openat(trash, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DirHandle dir(fdopendir(copy.get()), closedir);
    if (dir == nullptr) return any;
    (void)copy.release();
    while (dirent* item = readdir(dir.get())) {
      std::string_view name = item->d_name;
      if (name == "." || name == "..") continue;
      failpoint("sweep.found");
      remove(trash, item->d_name);
      failpoint("sweep.removed");
      struct stat info {};
      // Still there means it cannot be removed now; the next start tries again.
      if (fstatat(trash, item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) found = any = true;
    }
  }
  return any;
}

[[noreturn]] void run_sweeper(pid_t parent, int trash, int wake) {
  prctl(PR_SET_NAME, "atoll-sweeper");
  os::die_with_parent(parent);
  setpriority(PRIO_PROCESS, 0, 10);
  syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
  for (;;) {
    if (sweep(trash)) hurry_space_back(trash, wake);
    char bells[256];
    if (read(wake, bells, sizeof bells) <= 0 && errno != EINTR) _exit(0);
  }
}

}  // namespace

Result<Trash> Trash::open(UniqueFd dir) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe2");
  UniqueFd listen_end(ends[0]), wake(ends[1]);
  fcntl(wake.get(), F_SETFL, O_NONBLOCK);  // a full pipe has woken it already
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return fail_errno("fork", "sweeper");
  if (pid == 0) {
    // The server's socket must close when the launcher dies, whatever the sweeper is doing.
    int trash = fcntl(dir.get(), F_DUPFD, 64);
    int bell = fcntl(listen_end.get(), F_DUPFD, 64);
    dup2(trash, 3);
    dup2(bell, 4);
    syscall(SYS_close_range, 5, ~0u, 0);
    run_sweeper(parent, 3, 4);
  }
  return Trash(std::move(dir), std::move(wake), os::pidfd_open(pid));
}

Result<void> Trash::take(int parent, const std::string& name) {
  std::string unique = name + "." + random_id("", 8);
  if (renameat(parent, name.c_str(), dir_.get(), unique.c_str()) != 0) {
    if (errno == ENOENT) return {};
    // A rename takes room that a full pool may not have; to remove is what makes some.
    Error error = Error::from_errno(errno, "move to trash", name);
    bool full = errno == ENOSPC || errno == EDQUOT;
    if (!full || !os::btrfs::is_subvolume(parent, name.c_str())) return fail(std::move(error));
    ATOLL_TRY(os::btrfs::destroy_subvolume(parent, name));
  }
  [[maybe_unused]] ssize_t ignored = write(wake_.get(), "t", 1);
  return {};
}

void Trash::finish(std::chrono::milliseconds limit) {
  wake_.reset();
  pollfd wait{sweeper_.get(), POLLIN, 0};
  poll(&wait, 1, static_cast<int>(limit.count()));
}

}  // namespace atl::launcher
