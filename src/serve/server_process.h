// The unprivileged process: HTTP, state, scheduling. It never touches a sandbox's files itself.
#pragma once

#include "serve/setup.h"

namespace atl::serve {

inline constexpr int kExitLauncherLost = 3;
inline constexpr int kExitCannotStart = 4;

// Drops privileges and serves until told to end. Never returns.
struct ServerStart {
  pid_t parent = 0;       // whose death ends this process; sandboxes go on
  bool announce = false;  // readiness, to --ready-fd
};
struct ServerLinks {
  UniqueFd launcher;
  UniqueFd egress;
};
[[noreturn]] void run_server(const config::Config& config, Prepared& prepared, ServerLinks links,
                             ServerStart start);

}  // namespace atl::serve
