#pragma once

#include "base/result.h"

namespace atl::launcher {

// The calling process enters a network namespace that has what every sandbox's has. New sandboxes
// and revived ones get theirs here, so whatever a network needs beside it belongs here.
Result<void> enter_new_network();

}  // namespace atl::launcher
