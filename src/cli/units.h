// Sizes, durations and counts as people write and read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::cli {

// "512m", "2g", "1.5GiB": powers of 1024, the unit is required.
Result<uint64_t> parse_size(std::string_view text);
// "30s", "1h30m", "500ms", "2d"; "never" is 0. The unit is required.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);
// "1", "0.5": thousandths of a core.
Result<uint32_t> parse_cores(std::string_view text);
Result<uint32_t> parse_count(std::string_view text);
// "A=1" into its two halves.
Result<std::pair<std::string, std::string>> parse_assignment(std::string_view text);

// "1.5 GiB", "512 MiB", "17 B".
std::string format_size(uint64_t bytes);
// "3 s", "5 min", "2 h", "4 d": what is enough beside a table's other columns.
std::string format_age(std::chrono::milliseconds age);
// "1.25 s", "340 ms", "90 us".
std::string format_cpu(uint64_t microseconds);

}  // namespace atl::cli
