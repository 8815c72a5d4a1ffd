#include "cli/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace atl::cli {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

// Enough of Unicode's wide blocks for names and paths; a table is not a typesetter.
constexpr std::array kWide = {
    Range{0x1100, 0x115f},   Range{0x2e80, 0x303e},   Range{0x3041, 0xa4cf},  Range{0xac00, 0xd7a3},
    Range{0xf900, 0xfaff},   Range{0xfe30, 0xfe6f},   Range{0xff00, 0xff60},  Range{0xffe0, 0xffe6},
    Range{0x1f300, 0x1f64f}, Range{0x1f900, 0x1f9ff}, Range{0x20000, 0x3fffd}};
constexpr std::array kZero = {Range{0x0300, 0x036f}, Range{0x200b, 0x200f}, Range{0xfe00, 0xfe0f}};

template <size_t N>
bool contains(const std::array<Range, N>& ranges, uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](Range range) { return code >= range.first && code <= range.last; });
}

size_t width_of(uint32_t code) {
  if (contains(kZero, code)) return 0;
  return contains(kWide, code) ? 2 : 1;
}

// Takes one code point off the front; a byte that begins none counts as one.
uint32_t take_code_point(std::string_view& text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc0 ? 2 : 1;
  uint32_t code = length == 1 ? byte(0) : byte(0) & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; i++) {
    if (i >= text.size() || (byte(i) & 0xc0) != 0x80) {
      length = 1;
      code = '?';
      break;
    }
    code = code << 6 | (byte(i) & 0x3fu);
  }
  text.remove_prefix(length);
  return code;
}

std::string_view escape_of(Colour colour) {
  switch (colour) {
    case Colour::None:
      return "";
    case Colour::Bold:
      return "\x1b[1m";
    case Colour::Dim:
      return "\x1b[2m";
    case Colour::Red:
      return "\x1b[31m";
    case Colour::Green:
      return "\x1b[32m";
    case Colour::Yellow:
      return "\x1b[33m";
    case Colour::Blue:
      return "\x1b[34m";
  }
  return "";
}

}  // namespace

bool use_colour(int fd) {
  const char* no_colour = getenv("NO_COLOR");
  const char* term = getenv("TERM");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  if (term != nullptr && std::string_view(term) == "dumb") return false;
  return isatty(fd) == 1;
}

std::string paint(std::string_view text, Colour colour, bool enabled) {
  if (!enabled || colour == Colour::None) return std::string(text);
  return std::string(escape_of(colour)).append(text).append("\x1b[0m");
}

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) width += width_of(take_code_point(text));
  return width;
}

std::string fit(std::string_view text, size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::string_view rest = text;
  size_t used = 0;
  size_t kept = 0;
  while (!rest.empty()) {
    used += width_of(take_code_point(rest));
    if (used > width - 1) break;
    kept = text.size() - rest.size();
  }
  return std::string(text.substr(0, kept)) + "…";
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (size_t i = 0; i < out.size(); i++) {
    auto byte = static_cast<unsigned char>(out[i]);
    // U+0080 to U+009F are control characters too: "\xc2\x9b" is an escape to some terminals.
    bool c1 = byte == 0xc2 && i + 1 < out.size() && static_cast<unsigned char>(out[i + 1]) < 0xa0;
    if (byte < 0x20 || byte == 0x7f) out[i] = byte == '\n' || byte == '\t' ? ' ' : '?';
    if (c1) out.replace(i, 2, "?");
  }
  return out;
}

}  // namespace atl::cli
