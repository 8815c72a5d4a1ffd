#include "base/log.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include "base/iso_time.h"
#include "base/log_line.h"

namespace atl {
namespace {

LogLevel minimum_level = LogLevel::Info;
LogFormat line_format = LogFormat::Json;
std::string component_name = "atoll";

std::string timestamp() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return iso_time(int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000);
}

}  // namespace

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return "debug";
    case LogLevel::Info:
      return "info";
    case LogLevel::Warning:
      return "warning";
    case LogLevel::Error:
      return "error";
  }
  return "info";
}

std::optional<LogLevel> log_level_from(std::string_view name) {
  for (LogLevel level : {LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error}) {
    if (to_string(level) == name) return level;
  }
  return std::nullopt;
}

std::optional<LogFormat> log_format_from(std::string_view name) {
  if (name == "json") return LogFormat::Json;
  if (name == "text") return LogFormat::Text;
  return std::nullopt;
}

void set_log_level(LogLevel minimum) { minimum_level = minimum; }
void set_log_format(LogFormat format) { line_format = format; }
void set_log_component(std::string_view component) { component_name = component; }

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (level < minimum_level) return;
  std::string time = timestamp();
  std::string line = log_line(line_format, {.time = time,
                                            .level = level,
                                            .component = component_name,
                                            .message = message,
                                            .fields = fields});
  // One write a line keeps lines of several processes whole; a full or closed log is not an error.
  [[maybe_unused]] ssize_t ignored = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace atl
