#pragma once

#include <cstdint>

namespace atl::sandbox {

int64_t wall_clock_ms();

}  // namespace atl::sandbox
