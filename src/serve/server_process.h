// The unprivileged process: HTTP, state, scheduling. It never touches a sandbox's files itself.
#pragma once

#include "serve/setup.h"

namespace atl::serve {

inline constexpr int kExitLauncherLost = 3;
inline constexpr int kExitCannotStart = 4;

// Drops privileges and serves until told to end. Never returns.
[[noreturn]] void run_server(const cli::ServeArguments& arguments, Prepared& prepared,
                             UniqueFd launcher, bool announce);

}  // namespace atl::serve
