// What the future PID 1 does to itself between clone and exec.
#pragma once

#include "launcher/shell.h"

namespace atl::launcher {

struct ShellChild {
  const ShellPlan* plan = nullptr;
  int go_fd = -1;  // a byte arrives once the id maps are written; its end means the builder's
  int go_write_fd = -1;
  int report_fd = -1;  // gets the reason where set-up fails; closed by a successful exec
  int listener = -1;
  int cgroup_dir = -1;
};

// Execs the agent or exits.
[[noreturn]] void become_agent(const ShellChild& child);

}  // namespace atl::launcher
