// When a sandbox ends by itself. Wall time has no say in it: it may be set at any moment.
#pragma once

#include "sandbox/sandbox.h"

namespace atl::sandbox {

enum class Due : uint8_t { Nothing, Lifetime, Idle, Shelved };

Due due(const Sandbox& sandbox, const BootTime& now);

// When a recorded sandbox was started, or ended, on the clock of the present boot. Of another boot
// only the wall clock's word is left.
BootTime on_this_boot(const Record& record, const BootTime& now, int64_t wall_now_ms);

}  // namespace atl::sandbox
