#pragma once

#include <cstdint>
#include <string>

namespace atl {

// "2026-01-02T03:04:05.678Z", from milliseconds since 1970.
std::string iso_time(int64_t milliseconds);

}  // namespace atl
