#pragma once

#include <cstdint>

#include "base/result.h"

namespace atl::auth {

// How much a tenant may hold, holds, or asks for. In a limit 0 means unlimited; in an amount it
// means none, so the caller puts the defaults in before asking.
struct Quota {
  uint32_t sandboxes = 0;
  uint32_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  uint64_t disk_bytes = 0;
  bool operator==(const Quota&) const = default;
};

// ResourceExhausted (HTTP 429, QUOTA_EXCEEDED) where `used` and `wanted` together exceed `limit`.
// The message names quotaType, current, wanted and limit in the units of the API, the field is what
// to make smaller in the request. A limit lowered below what is used stops growth, nothing else.
Result<void> check(const Quota& limit, const Quota& used, const Quota& wanted);

}  // namespace atl::auth
