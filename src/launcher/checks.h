#pragma once

#include <string>

#include "atoll/types.h"
#include "base/random_id.h"
#include "base/result.h"
#include "os/cgroup_tree.h"

namespace atl::launcher {

inline os::CgroupLimits cgroup_limits(const Limits& limits) {
  return {
      .memory_bytes = limits.memory_bytes, .cpu_millis = limits.cpu_millis, .pids = limits.pids};
}

// Every id from the server becomes a file name: nothing else may pass.
inline Result<void> check_id(const std::string& id) {
  if (is_valid_id(id)) return {};
  return fail(ErrorCode::InvalidArgument, "malformed id");
}

}  // namespace atl::launcher
