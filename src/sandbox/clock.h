#pragma once

#include <cstdint>
#include <string>

namespace atl::sandbox {

// What people and other machines call the time. It may be set, by years.
int64_t wall_clock_ms();

// Time that nobody can set, for what must take as long as it was said to: since the host was
// booted, sleep included. Says nothing beside a time of another boot.
struct BootTime {
  std::string boot;
  int64_t ms = 0;

  static BootTime now();
};

}  // namespace atl::sandbox
