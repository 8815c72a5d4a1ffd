// What the terminal can show: colours, its size, how wide a text is on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace atl::cli {

enum class Colour : uint8_t { None, Bold, Dim, Red, Green, Yellow, Blue };

// Colours are for terminals, and NO_COLOR (https://no-color.org) turns them off there too.
bool use_colour(int fd);
std::string paint(std::string_view text, Colour colour, bool enabled);

struct TerminalSize {
  uint16_t cols = 80;
  uint16_t rows = 24;
};
TerminalSize terminal_size(int fd);

// Columns that a UTF-8 text takes.
size_t display_width(std::string_view text);
// The beginning that fits, with "…" where something was cut.
std::string fit(std::string_view text, size_t width);
// Control characters as "?": what a sandbox chose must not drive the terminal.
std::string printable(std::string_view text);

}  // namespace atl::cli
