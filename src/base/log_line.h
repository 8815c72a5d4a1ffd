// One log entry as text. Pure, so that what reaches a log can be tested to the byte.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/log.h"

namespace atl {

struct LogEntry {
  std::string_view time;
  LogLevel level = LogLevel::Info;
  std::string_view component;
  std::string_view message;
  std::span<const LogField> fields;
};

// With the newline, the only one: whatever a value contains, an entry is one line, shows no
// credential, and sends nothing to a terminal but visible characters.
std::string log_line(LogFormat format, const LogEntry& entry);

}  // namespace atl
