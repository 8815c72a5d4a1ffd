#pragma once

#include "base/result.h"

namespace atl::os {

// Brings `lo` up in the calling process's network namespace. 127.0.0.1 and ::1 follow from that.
Result<void> bring_loopback_up();

}  // namespace atl::os
