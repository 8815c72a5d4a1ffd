// Turns a SeccompPolicy into classic BPF. The result is plain bytes: whoever installs it hands them
// to seccomp(2) and allocates nothing, so it is safe between clone and exec.
//
// We compile ourselves and use libseccomp only for the names of calls: it cannot say "allowed
// unless the low half of this argument is X" nor give a filtered call a verdict of its own when no
// rule matches, and it silently drops the refusals when one tries. Runs of neighbouring calls with
// the same verdict share one comparison, so the program is also a third as long.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "base/result.h"
#include "os/seccomp_policy.h"

namespace atl {

Result<std::vector<sock_filter>> compile_seccomp(const SeccompPolicy& policy);

// main_seccomp_policy(), compiled. Installed once, on the agent; what the agent starts adds the
// small one of os/exec_filter.h.
Result<std::vector<sock_filter>> build_main_filter();

}  // namespace atl
