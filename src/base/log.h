// Structured logs: one JSON object a line on standard error. Only the outermost function that
// handles an error logs it; library code returns it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace atl {

enum class LogLevel { Debug, Info, Warning, Error };

struct LogField {
  std::string_view key;
  std::string value;
};

void set_log_level(LogLevel minimum);
void set_log_component(std::string_view component);
void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

}  // namespace atl
