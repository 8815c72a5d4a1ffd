// A process that outlives the test, however it ends, and clears away what it leaves: sandboxes in
// its control groups and its directory.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"

namespace atl::test {

class CleanupGuard {
 public:
  // `cgroup` is the test's own subtree, `directory` the test's own.
  CleanupGuard(std::string cgroup, std::string directory);
  CleanupGuard(const CleanupGuard&) = delete;
  CleanupGuard& operator=(const CleanupGuard&) = delete;
  // Has it done now, and waits until it is.
  ~CleanupGuard();

  // In a child of the test, which is not what the guard waits for.
  void leave_to_parent();

 private:
  UniqueFd alive_;  // its closing is the signal
  pid_t pid_ = -1;
};

}  // namespace atl::test
