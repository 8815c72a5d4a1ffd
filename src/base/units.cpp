#include "base/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

namespace atl {
namespace {

// Digits with at most one point among them; nothing else, so no sign, exponent or "inf".
std::optional<double> parse_decimal(std::string_view text) {
  if (text.empty() || text.size() > 18 || text.front() == '.' || text.back() == '.') return {};
  if (text.find_first_not_of("0123456789.") != text.npos) return {};
  if (text.find('.') != text.rfind('.')) return {};
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::optional<double> size_unit(const std::string& unit) {
  constexpr std::string_view kPrefixes = "kmgt";
  if (unit == "b") return 1;
  size_t power = unit.empty() ? kPrefixes.npos : kPrefixes.find(unit[0]);
  std::string_view rest = std::string_view(unit).substr(unit.empty() ? 0 : 1);
  if (power == kPrefixes.npos || (!rest.empty() && rest != "b" && rest != "ib")) return {};
  return std::pow(1024.0, static_cast<double>(power + 1));
}

std::optional<double> time_unit_ms(std::string_view unit) {
  if (unit == "ms") return 1;
  if (unit == "s") return 1000;
  if (unit == "m" || unit == "min") return 60'000;
  if (unit == "h") return 3'600'000;
  if (unit == "d") return 86'400'000;
  return {};
}

tl::unexpected<Error> wrong(std::string_view text, std::string_view what) {
  return fail(ErrorCode::InvalidArgument, fmt::format("'{}' is not {}", text, what));
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kWhat = "a size, such as 512m or 1.5g";
  size_t digits = text.find_first_not_of("0123456789.");
  std::optional<double> number = parse_decimal(text.substr(0, digits));
  if (!number) return wrong(text, kWhat);
  if (digits == text.npos) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'{}' needs a unit, for example {}m or {}g", text, text, text));
  }
  std::optional<double> unit = size_unit(lower(text.substr(digits)));
  double bytes = *number * unit.value_or(0);
  if (!unit || bytes < 1 || bytes > 1e18) return wrong(text, kWhat);
  return static_cast<uint64_t>(std::llround(bytes));
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr std::string_view kWhat = "a duration, such as 30s, 1h30m or never";
  if (text == "never") return std::chrono::milliseconds(0);
  double total = 0;
  std::string_view rest = text;
  if (rest.empty()) return wrong(text, kWhat);
  while (!rest.empty()) {
    size_t digits = rest.find_first_not_of("0123456789.");
    std::optional<double> number = parse_decimal(rest.substr(0, digits));
    if (!number) return wrong(text, kWhat);
    if (digits == rest.npos) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("'{}' needs a unit, for example {}s or {}m", text, rest, rest));
    }
    rest.remove_prefix(digits);
    size_t letters = std::min(rest.find_first_of("0123456789."), rest.size());
    std::optional<double> unit = time_unit_ms(rest.substr(0, letters));
    if (!unit) return wrong(text, kWhat);
    total += *number * *unit;
    rest.remove_prefix(letters);
  }
  if (total < 1 || total > 1e15) return wrong(text, kWhat);
  return std::chrono::milliseconds(std::llround(total));
}

Result<uint32_t> parse_cores(std::string_view text) {
  std::optional<double> cores = parse_decimal(text);
  if (!cores || *cores < 0.001 || *cores > 100'000) {
    return wrong(text, "a number of cores, such as 1 or 0.5");
  }
  return static_cast<uint32_t>(std::lround(*cores * 1000));
}

Result<uint32_t> parse_count(std::string_view text) {
  uint32_t value = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc() || end != text.data() + text.size() || text.empty()) {
    return wrong(text, "a whole number");
  }
  return value;
}

}  // namespace atl
