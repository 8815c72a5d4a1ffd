#include "base/json_escape.h"

#include <array>
#include <cstdint>

namespace atl {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the well-formed UTF-8 sequence at text[i] (Unicode table 3-7), or 0.
size_t sequence_length(std::string_view text, size_t i) {
  auto byte = [&](size_t k) -> uint8_t {
    return i + k < text.size() ? static_cast<uint8_t>(text[i + k]) : uint8_t{0};
  };
  auto tail = [&](size_t k) { return (byte(k) & 0xC0) == 0x80; };
  uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    uint8_t low = first == 0xE0 ? 0xA0 : 0x80;
    uint8_t high = first == 0xED ? 0x9F : 0xBF;
    return byte(1) >= low && byte(1) <= high && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    uint8_t low = first == 0xF0 ? 0x90 : 0x80;
    uint8_t high = first == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= low && byte(1) <= high && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

bool is_plain(char c) { return static_cast<uint8_t>(c) >= 0x20 && c != '"' && c != '\\' && c > 0; }

void append_control(std::string& out, char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out.append("\\\"");
      return;
    case '\\':
      out.append("\\\\");
      return;
    case '\n':
      out.append("\\n");
      return;
    case '\r':
      out.append("\\r");
      return;
    case '\t':
      out.append("\\t");
      return;
    default: {
      std::array<char, 6> escaped = {'\\', 'u', '0', '0', kHex[(c >> 4) & 15], kHex[c & 15]};
      out.append(escaped.data(), escaped.size());
    }
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  for (size_t i = 0; i < text.size();) {
    size_t run = i;
    while (run < text.size() && is_plain(text[run])) run++;
    out.append(text.substr(i, run - i));
    if ((i = run) == text.size()) break;
    size_t length = sequence_length(text, i);
    if (length > 1) {
      out.append(text.substr(i, length));
    } else if (length == 1) {
      append_control(out, text[i]);
    } else {
      out.append(kReplacement);
    }
    i += length == 0 ? 1 : length;
  }
  out.push_back('"');
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    size_t length = sequence_length(text, i);
    out.append(length == 0 ? kReplacement : text.substr(i, length));
    i += length == 0 ? 1 : length;
  }
  return out;
}

bool is_valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    size_t length = sequence_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

}  // namespace atl
