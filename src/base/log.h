// Structured logs: one entry a line on standard error, as JSON or as text. Only the outermost
// function that handles an error logs it; library code returns it.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace atl {

enum class LogLevel { Debug, Info, Warning, Error };
std::string_view to_string(LogLevel level);
std::optional<LogLevel> log_level_from(std::string_view name);

enum class LogFormat { Json, Text };
std::optional<LogFormat> log_format_from(std::string_view name);

struct LogField {
  std::string_view key;
  std::string value;
};

// For the whole process; set them before there are threads.
void set_log_level(LogLevel minimum);
void set_log_format(LogFormat format);
void set_log_component(std::string_view component);

// What looks like a credential is not shown (redact.h).
void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

}  // namespace atl
