// `atoll serve`: three processes under a supervisor that only starts, watches and ends them.
#pragma once

#include "config/config.h"

namespace atl::serve {

// The process's exit code.
int run_serve(const config::Config& config);

}  // namespace atl::serve
