// Sandboxes that an earlier launcher left running.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace atl::launcher {

struct Survivor {
  pid_t pid = 0;
  uint32_t id_base = 0;
  UniqueFd pidfd;
};

// The PID 1 among the processes of a control group, if there is one.
std::optional<Survivor> find_survivor(const std::vector<pid_t>& processes);

enum class Names { Plain, Hidden };
// Sub-directories whose names start with a dot, or do not.
std::vector<std::string> list_directories(int dir, Names which);

}  // namespace atl::launcher
