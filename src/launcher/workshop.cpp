#include "launcher/workshop.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "launcher/mount_table.h"
#include "os/parent_death.h"
#include "os/syscalls.h"

namespace atl::launcher {
namespace {

Result<UniqueFd> read_only_tree(const std::string& path, uint64_t extra = MOUNT_ATTR_NODEV) {
  UniqueFd tree = os::open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (!tree.valid()) return fail_errno("open", path);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | extra;
  if (os::mount_setattr(tree.get(), "", AT_EMPTY_PATH, attributes) != 0) {
    return fail_errno("mount_setattr", path);
  }
  return tree;
}

Result<void> attach(const UniqueFd& tree, const char* to) {
  if (os::move_mount(tree.get(), "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return fail_errno("move_mount", to);
  }
  return {};
}

}  // namespace

Workshop Workshop::find(const std::string& criu_dir) {
  Workshop workshop;
  if (criu_dir.empty()) {
    workshop.lacking_ =
        "criu is not there: run packaging/fetch-criu /usr/local/lib/atoll/criu and start the "
        "server "
        "again";
    return workshop;
  }
  auto criu = read_only_tree(criu_dir);
  auto usr = read_only_tree("/usr");
  if (!criu || !usr) {
    workshop.lacking_ = (criu ? usr : criu).error().message();
    return workshop;
  }
  workshop.criu_ = std::move(*criu);
  workshop.usr_ = std::move(*usr);
  return workshop;
}

Result<void> Workshop::assemble() const {
  if (unshare(CLONE_NEWNS) != 0) return fail_errno("unshare", "mount namespace");
  ATOLL_TRY(attach(criu_, kCriuDir));
  ATOLL_TRY(attach(usr_, "/usr"));
  // What covers /proc, and the agent: as they are mounted here, so they are in what is restored.
  for (const char* mask : {kEmptyDir, kNull}) {
    ATOLL_ASSIGN(UniqueFd tree, read_only_tree(mask, MOUNT_ATTR_NOEXEC));
    ATOLL_TRY(attach(tree, mask));
  }
  ATOLL_ASSIGN(UniqueFd agent, read_only_tree(kReadableAgent));
  ATOLL_TRY(attach(agent, kReadableAgent));
  // Only to tell it from the sandboxes' own.
  if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666") !=
      0) {
    return fail_errno("mount", "devpts");
  }
  for (const char* place : {"/run", "/tmp"}) {
    if (mount("atoll", place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") != 0) {
      return fail_errno("mount", place);
    }
  }
  return {};
}

// By a child, whose mount namespace is kept when it has gone.
void Workshop::build() {
  if (!lacking_.empty()) return;
  int ready[2], go[2];
  if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(go, O_CLOEXEC) != 0) {
    lacking_ = "no pipe could be made";
    return;
  }
  UniqueFd ready_read(ready[0]), ready_write(ready[1]), go_read(go[0]), go_write(go[1]);
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid == 0) {
    os::die_with_parent(parent);
    auto made = assemble();
    std::string word = made ? "K" : made.error().message();
    (void)!write(ready_write.get(), word.data(), word.size());
    go_write.reset();
    char end = 0;
    (void)!read(go_read.get(), &end, 1);
    _exit(0);
  }
  char word[512];
  ssize_t size = pid > 0 ? read(ready_read.get(), word, sizeof word) : 0;
  std::string_view said(word, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  if (said == "K") {
    std::string path = "/proc/" + std::to_string(pid) + "/ns/mnt";
    mounts_.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  go_write.reset();
  if (pid > 0) waitpid(pid, nullptr, 0);
  criu_.reset();
  usr_.reset();
  if (!mounts_.valid()) lacking_ = "no place for criu: " + std::string(said);
}

Result<void> Workshop::enter() const {
  if (!lacking_.empty()) return fail(ErrorCode::NotSupported, lacking_);
  if (setns(mounts_.get(), CLONE_NEWNS) != 0) return fail_errno("setns", "criu's mounts");
  if (unshare(CLONE_NEWNS) != 0) return fail_errno("unshare", "mount namespace");
  return {};
}

criu::Program Workshop::program() const { return {.dir = kCriuDir}; }

}  // namespace atl::launcher
