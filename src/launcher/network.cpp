#include "launcher/network.h"

#include <sched.h>

#include "os/loopback.h"

namespace atl::launcher {

Result<void> enter_new_network() {
  // Made before the sandbox's user namespace exists, so it belongs to the host's: root inside the
  // sandbox has no power over it.
  if (unshare(CLONE_NEWNET) != 0) return fail_errno("unshare", "network namespace");
  return os::bring_loopback_up();
}

}  // namespace atl::launcher
