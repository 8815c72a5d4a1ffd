#include "base/base64url.h"

#include <array>
#include <cstdint>

namespace atl {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr uint8_t kForeign = 0xFF;

constexpr std::array<uint8_t, 256> kValues = [] {
  std::array<uint8_t, 256> values{};
  values.fill(kForeign);
  for (size_t i = 0; i < kAlphabet.size(); i++) {
    values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  }
  return values;
}();

}  // namespace

std::string base64url_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() * 4 + 2) / 3);
  uint32_t bits = 0;
  int held = 0;
  for (char byte : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(byte);
    for (held += 8; held >= 6; held -= 6) out.push_back(kAlphabet[bits >> (held - 6) & 63]);
  }
  if (held > 0) out.push_back(kAlphabet[bits << (6 - held) & 63]);
  return out;
}

std::optional<std::string> base64url_decode(std::string_view text) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  out.reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  int held = 0;
  for (char c : text) {
    uint8_t value = kValues[static_cast<uint8_t>(c)];
    if (value == kForeign) return std::nullopt;
    bits = bits << 6 | value;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out.push_back(static_cast<char>(bits >> held & 0xFF));
  }
  if ((bits & ((1u << held) - 1)) != 0) return std::nullopt;
  return out;
}

}  // namespace atl
