#include "base/log.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include "base/iso_time.h"
#include "base/json_escape.h"

namespace atl {
namespace {

LogLevel minimum_level = LogLevel::Info;
std::string component_name = "atoll";

std::string_view name_of(LogLevel level) {
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

std::string timestamp() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return iso_time(int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000);
}

}  // namespace

void set_log_level(LogLevel minimum) { minimum_level = minimum; }
void set_log_component(std::string_view component) { component_name = component; }

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (level < minimum_level) return;
  std::string line = fmt::format(R"({{"time":"{}","level":"{}","component":"{}","message":)",
                                 timestamp(), name_of(level), component_name);
  append_json_string(line, message);
  for (const LogField& field : fields) {
    line.push_back(',');
    append_json_string(line, field.key);
    line.push_back(':');
    append_json_string(line, field.value);
  }
  line.append("}\n");
  // One write a line keeps lines of several processes whole; a full or closed log is not an error.
  [[maybe_unused]] ssize_t ignored = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace atl
