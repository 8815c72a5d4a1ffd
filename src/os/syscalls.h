// System calls that the C library of Debian 12 has no wrapper for, or only a partial one. Each
// returns what the kernel returns, with errno set; the callers above add the words.
#pragma once

#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "base/unique_fd.h"

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

namespace atl::os {

inline UniqueFd openat2(int dir, const char* path, const open_how& how) {
  return UniqueFd(static_cast<int>(syscall(SYS_openat2, dir, path, &how, sizeof how)));
}
inline UniqueFd open_tree(int dir, const char* path, unsigned flags) {
  return UniqueFd(static_cast<int>(syscall(SYS_open_tree, dir, path, flags)));
}
inline int move_mount(int from_dir, const char* from, int to_dir, const char* to, unsigned flags) {
  return static_cast<int>(syscall(SYS_move_mount, from_dir, from, to_dir, to, flags));
}
inline UniqueFd fsopen(const char* type) {
  return UniqueFd(static_cast<int>(syscall(SYS_fsopen, type, FSOPEN_CLOEXEC)));
}
inline int fsconfig(int fd, unsigned command, const char* key, const void* value, int extra) {
  return static_cast<int>(syscall(SYS_fsconfig, fd, command, key, value, extra));
}
inline UniqueFd fsmount(int fd, unsigned attributes) {
  return UniqueFd(static_cast<int>(syscall(SYS_fsmount, fd, FSMOUNT_CLOEXEC, attributes)));
}
inline int mount_setattr(int dir, const char* path, unsigned flags, const mount_attr& attributes) {
  return static_cast<int>(
      syscall(SYS_mount_setattr, dir, path, flags, &attributes, sizeof attributes));
}
inline int pivot_root(const char* new_root, const char* put_old) {
  return static_cast<int>(syscall(SYS_pivot_root, new_root, put_old));
}
inline UniqueFd pidfd_open(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}
inline int pidfd_send_signal(int pidfd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

}  // namespace atl::os
