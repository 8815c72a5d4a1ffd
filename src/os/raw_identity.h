// A change of user in the child of a raw clone.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

namespace atl::os {

// Root of the user namespace, with its group only. Not by the C library's functions: they change
// every thread that they believe there is, and after a raw clone those are the parent's, which
// never answer.
inline bool become_namespace_root() {
  return syscall(SYS_setgroups, 0, nullptr) == 0 && syscall(SYS_setresgid, 0, 0, 0) == 0 &&
         syscall(SYS_setresuid, 0, 0, 0) == 0;
}

}  // namespace atl::os
