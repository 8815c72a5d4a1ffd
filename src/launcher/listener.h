// The socket that a sandbox's agent listens on.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::launcher {

struct ListenerPlan {
  int run_dir = -1;  // gets <slot>.sock
  std::string slot;
  uid_t uid = 0;  // who may connect
  gid_t gid = 0;
};

// Made in the caller's network namespace, because that is where a checkpoint looks for it; its name
// exists on the host only.
Result<UniqueFd> make_listener(const ListenerPlan& plan);

}  // namespace atl::launcher
