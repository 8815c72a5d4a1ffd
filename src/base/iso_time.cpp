#include "base/iso_time.h"

#include <fmt/format.h>
#include <time.h>

namespace atl {

std::string iso_time(int64_t milliseconds) {
  time_t seconds = milliseconds / 1000;
  tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     milliseconds % 1000);
}

}  // namespace atl
