#pragma once

#include <cstdint>
#include <string>

namespace atl {

// Milliseconds since 1970 in UTC: "2026-01-31T09:30:00.000Z".
std::string iso_time(int64_t milliseconds);

}  // namespace atl
