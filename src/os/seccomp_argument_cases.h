// Calls whose verdict depends on an argument, at the edges of each rule.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace atl::seccomp_testing {

struct ArgumentCase {
  std::string what;
  uint32_t number;
  std::array<uint64_t, 6> args;
};

std::vector<ArgumentCase> argument_cases();

}  // namespace atl::seccomp_testing
