#include "sandbox/clock.h"

#include <time.h>

#include <fstream>

namespace atl::sandbox {

static int64_t read_clock_ms(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

static const std::string& boot_id() {
  static const std::string id = [] {
    std::string line;
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::getline(file, line);
    return line;
  }();
  return id;
}

int64_t wall_clock_ms() { return read_clock_ms(CLOCK_REALTIME); }

BootTime BootTime::now() { return {boot_id(), read_clock_ms(CLOCK_BOOTTIME)}; }

}  // namespace atl::sandbox
