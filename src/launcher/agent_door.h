// The launcher's own word with an agent, before and after a checkpoint (wire::Suspend).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::launcher {

// Waits a moment for what passes, such as a file operation. The answer holds the agent's sockets.
Result<std::vector<UniqueFd>> suspend_agent(int sockets_dir, const std::string& slot);

// Said before the agent runs again, and heard when it does.
Result<void> resume_agent(int sockets_dir, const std::string& slot, int pidfd,
                          const std::vector<UniqueFd>& sockets);

}  // namespace atl::launcher
