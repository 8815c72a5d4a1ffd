#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace atl::os {

// The calling process is killed when `parent` ends, also when that has happened already.
inline void die_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

}  // namespace atl::os
