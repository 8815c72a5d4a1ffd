#include "launcher/mount_table.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "os/file.h"
#include "os/syscalls.h"

namespace atl::launcher {

static Result<void> bind(const std::string& from, const char* to) {
  UniqueFd tree = os::open_tree(AT_FDCWD, from.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (!tree.valid()) return fail_errno("open_tree", from);
  if (os::move_mount(tree.get(), "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return fail_errno("move_mount", from);
  }
  return {};
}

static Result<void> make_places(std::string_view agent) {
  for (const char* dir :
       {"data", "pool", "proc", "root", "stage", "stage/proc", "stage/pts", "stage/shm", "empty"}) {
    ATOLL_TRY(os::make_dir_at(AT_FDCWD, dir, 0755));
  }
  UniqueFd place(open("stage/agent", O_CREAT | O_WRONLY | O_CLOEXEC, 0555));
  if (!place.valid()) return fail_errno("create", "stage/agent");
  // Execute only, and the host root's: a process whose executable it may not read has its /proc
  // files owned by that root, so the sandbox's own root cannot look into PID 1.
  UniqueFd copy(open("agent", O_CREAT | O_WRONLY | O_CLOEXEC, 0111));
  if (!copy.valid()) return fail_errno("create", "agent");
  ATOLL_TRY(os::write_all(copy.get(), agent));
  if (mknod("null", S_IFCHR | 0666, makedev(1, 3)) != 0) return fail_errno("mknod", "null");
  if (chmod("null", 0666) != 0) return fail_errno("chmod", "null");
  return {};
}

static Result<void> put_file(const char* name, std::string_view text, mode_t mode) {
  UniqueFd file(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, mode));
  if (!file.valid()) return fail_errno("create", name);
  if (fchmod(file.get(), mode) != 0) return fail_errno("chmod", name);
  return os::write_all(file.get(), text);
}

// What criu finds when it works (launcher/workshop.h).
static Result<void> make_workshop_places(std::string_view agent) {
  for (const char* dir : {"criu", "usr", "run", "tmp", "dev", "dev/pts", "dev/net", "criu-bin"}) {
    ATOLL_TRY(os::make_dir_at(AT_FDCWD, dir, 0755));
  }
  for (const char* name : {"bin", "sbin", "lib", "lib64"}) {
    if (symlinkat((std::string("usr/") + name).c_str(), AT_FDCWD, name) != 0) {
      return fail_errno("symlink", name);
    }
  }
  if (symlinkat("pts/ptmx", AT_FDCWD, "dev/ptmx") != 0) return fail_errno("symlink", "dev/ptmx");
  if (mknod("dev/null", S_IFCHR | 0666, makedev(1, 3)) != 0) return fail_errno("mknod", "dev/null");
  if (mknod("dev/net/tun", S_IFCHR | 0600, makedev(10, 200)) != 0) {
    return fail_errno("mknod", "dev/net/tun");
  }
  // Images are not worth packing while a sandbox stands still.
  ATOLL_TRY(put_file("criu-bin/gzip", "#!/bin/sh\nexec cat\n", 0755));
  ATOLL_TRY(put_file("criu.conf", "network-lock skip\nskip-file-rwx-check\n", 0644));
  // A revived agent maps its executable as its own root does, who may not read the other copy. What
  // that one hides is hidden all the same: the memory of the revived is the host root's.
  return put_file("agent-readable", agent, 0555);
}

Result<void> enter_minimal_mounts(const std::string& scratch, const std::string& data_dir,
                                  std::string_view agent) {
  if (unshare(CLONE_NEWNS) != 0) return fail_errno("unshare", "mount namespace");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return fail_errno("mount", "/");
  if (mount("atoll", scratch.c_str(), "tmpfs", MS_NOSUID, "mode=0755,size=8m,nr_inodes=96") != 0) {
    return fail_errno("mount tmpfs", scratch);
  }
  if (chdir(scratch.c_str()) != 0) return fail_errno("chdir", scratch);
  ATOLL_TRY(make_places(agent));
  ATOLL_TRY(make_workshop_places(agent));
  ATOLL_TRY(bind(data_dir, "data"));
  if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return fail_errno("mount", "proc");
  }
  if (os::pivot_root(".", ".") != 0) return fail_errno("pivot_root", scratch);
  if (umount2(".", MNT_DETACH) != 0) return fail_errno("umount", "the host's root");
  if (chdir("/") != 0) return fail_errno("chdir", "/");
  return {};
}

}  // namespace atl::launcher
