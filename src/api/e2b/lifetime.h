// E2B's time to live in terms of a sandbox's lifetime, and what sandboxes do at its end.
#pragma once

#include "api/context.h"

namespace atl::api::e2b {

inline constexpr int64_t kMaxTimeoutSeconds = int64_t{10} * 365 * 86400;
inline constexpr uint32_t kDefaultTimeoutSeconds = 300;

// When it ends unless somebody speaks up, in Unix milliseconds. E2B knows no sandbox without an
// end: one is shown as ending in a day from now.
int64_t end_of(const sandbox::Record& record);
// Ends that many seconds from now; with `only_later`, unless it ends later anyway.
Task<Result<void>> set_timeout(Context& context, sandbox::SandboxPtr sandbox, uint32_t seconds,
                               bool only_later = false);
// Paused or stopped, it is without an end until it runs again.
Task<Result<void>> pause(Context& context, sandbox::SandboxPtr sandbox, bool memory);
// Runs it again; true where it did not run.
Task<Result<bool>> resume(Context& context, sandbox::SandboxPtr sandbox, uint32_t seconds);
// Traffic resumes what paused at the end of its time, where that was asked for.
Task<Result<void>> wake(Context& context, sandbox::SandboxPtr sandbox);

bool is_paused(const sandbox::Record& record);

}  // namespace atl::api::e2b
