// Sizes, durations and counts as people write them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace atl {

// "512m", "2g", "1.5GiB": powers of 1024, the unit is required.
Result<uint64_t> parse_size(std::string_view text);
// "30s", "1h30m", "500ms", "2d"; "never" is 0. The unit is required.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);
// "1", "0.5": thousandths of a core.
Result<uint32_t> parse_cores(std::string_view text);
Result<uint32_t> parse_count(std::string_view text);

}  // namespace atl
