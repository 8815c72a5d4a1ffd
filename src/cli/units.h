// Values as people write them (base/units.h) and read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace atl::cli {

// "A=1" into its two halves.
Result<std::pair<std::string, std::string>> parse_assignment(std::string_view text);

// "1.5 GiB", "512 MiB", "17 B".
std::string format_size(uint64_t bytes);
// "3 s", "5 min", "2 h", "4 d": what is enough beside a table's other columns.
std::string format_age(std::chrono::milliseconds age);
// "1.25 s", "340 ms", "90 us".
std::string format_cpu(uint64_t microseconds);

}  // namespace atl::cli
