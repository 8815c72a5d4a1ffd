#include "cli/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace atl::cli {

Result<std::pair<std::string, std::string>> parse_assignment(std::string_view text) {
  size_t equals = text.find('=');
  if (equals == 0 || equals == text.npos) {
    return fail(ErrorCode::InvalidArgument, fmt::format("'{}' is not of the form KEY=VALUE", text));
  }
  return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

std::string format_size(uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    unit++;
  }
  double tenths = std::round(value * 10) / 10;
  if (tenths == std::floor(tenths)) return fmt::format("{:.0f} {}", tenths, kUnits[unit]);
  return fmt::format("{:.1f} {}", tenths, kUnits[unit]);
}

std::string format_age(std::chrono::milliseconds age) {
  int64_t seconds = std::max<int64_t>(age.count() / 1000, 0);
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 120 * 60) return fmt::format("{} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} d", seconds / 86400);
}

std::string format_cpu(uint64_t microseconds) {
  if (microseconds < 1000) return fmt::format("{} us", microseconds);
  if (microseconds < 1'000'000) return fmt::format("{} ms", microseconds / 1000);
  return fmt::format("{:.2f} s", static_cast<double>(microseconds) / 1e6);
}

}  // namespace atl::cli
