// Programs started from here. By posix_spawn, which shares the memory until exec: what it costs
// does not depend on the size of this process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace atl::bench {

struct ChildOptions {
  int stdout_fd = -1;  // invalid: /dev/null
  int stderr_fd = -1;
  int pass_fd = -1;  // stays open in the child, as descriptor 3
};

Result<pid_t> start_child(const std::vector<std::string>& argv, const ChildOptions& options = {});
// Its wait status.
Result<int> wait_child(pid_t pid);
// Asks it to end and waits; kills it, and fails, where that takes longer. Its wait status.
Result<int> stop_child(pid_t pid, double seconds);
// Runs it to its end and fails unless that is a success.
Result<void> run_child(const std::vector<std::string>& argv, const ChildOptions& options = {});
// The same; what it printed.
Result<std::string> child_output(const std::vector<std::string>& argv);

// Orphans of our children come to us (leaks shall be found). This ends the wait of the dead among
// them; `keep` are children somebody else waits for.
void become_subreaper();
void reap_orphans(const std::vector<pid_t>& keep);

}  // namespace atl::bench
