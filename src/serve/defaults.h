#pragma once

#include "atoll/types.h"

namespace atl::serve {

// What a sandbox gets when its creator says nothing.
inline Limits default_limits() {
  return {.memory_bytes = uint64_t{2} << 30, .cpu_millis = 0, .pids = 1024, .disk_bytes = 0};
}

}  // namespace atl::serve
