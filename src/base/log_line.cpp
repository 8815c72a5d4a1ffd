#include "base/log_line.h"

#include <fmt/format.h>

#include "base/json_escape.h"
#include "base/redact.h"

namespace atl {
namespace {

enum class Quotes : bool { Keep, Escape };

// The code point that begins at text[i], which is valid UTF-8, and how many bytes it has.
struct CodePoint {
  uint32_t value = 0;
  size_t size = 1;
};

CodePoint code_point(std::string_view text, size_t i) {
  auto byte = [&](size_t k) { return static_cast<uint8_t>(text[i + k]); };
  auto tail = [&](size_t k) { return uint32_t{byte(k)} & 0x3F; };
  uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1Fu) << 6 | tail(1), 2};
  if (first < 0xF0) return {(first & 0x0Fu) << 12 | tail(1) << 6 | tail(2), 3};
  return {(first & 0x07u) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4};
}

// Ends a line for some reader, moves a terminal's cursor, or shows text in another order than it
// has: control characters (C0, DEL, C1), line and paragraph separator, bidirectional controls.
bool is_treacherous(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0x200E || c == 0x200F;
}

void append_escaped(std::string& out, std::string_view raw, Quotes quotes) {
  std::string text = to_valid_utf8(raw);
  for (size_t i = 0; i < text.size();) {
    CodePoint c = code_point(text, i);
    if (c.value == '\n')
      out.append("\\n");
    else if (c.value == '\\' || (c.value == '"' && quotes == Quotes::Escape))
      out.append("\\").push_back(static_cast<char>(c.value));
    else if (is_treacherous(c.value))
      out.append(fmt::format("\\u{:04x}", c.value));
    else
      out.append(text, i, c.size);
    i += c.size;
  }
}

void append_quoted(std::string& out, std::string_view text) {
  out.push_back('"');
  append_escaped(out, text, Quotes::Escape);
  out.push_back('"');
}

std::string shown_value(const LogField& field) {
  bool hidden = names_secret(field.key) && !field.value.empty();
  return hidden ? std::string(kRedacted) : redact(field.value);
}

bool is_bare(std::string_view value) {
  for (char c : value) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c > '~') return false;
  }
  return !value.empty();
}

std::string json_line(const LogEntry& entry) {
  std::string line = fmt::format(R"({{"time":"{}","level":"{}","component":"{}","message":)",
                                 entry.time, to_string(entry.level), entry.component);
  append_quoted(line, redact(entry.message));
  for (const LogField& field : entry.fields) {
    line.push_back(',');
    append_quoted(line, field.key);
    line.push_back(':');
    append_quoted(line, shown_value(field));
  }
  return line.append("}\n");
}

std::string text_line(const LogEntry& entry) {
  std::string line =
      fmt::format("{} {:<7} {}: ", entry.time, to_string(entry.level), entry.component);
  append_escaped(line, redact(entry.message), Quotes::Keep);
  for (const LogField& field : entry.fields) {
    line.push_back(' ');
    append_escaped(line, field.key, Quotes::Keep);
    line.push_back('=');
    std::string value = shown_value(field);
    if (is_bare(value))
      line.append(value);
    else
      append_quoted(line, value);
  }
  return line.append("\n");
}

}  // namespace

std::string log_line(LogFormat format, const LogEntry& entry) {
  return format == LogFormat::Json ? json_line(entry) : text_line(entry);
}

}  // namespace atl
