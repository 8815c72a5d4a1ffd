// Sockets that belong to another network namespace, whoever holds them.
#pragma once

#include <array>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::os {

// For TCP over IPv4 and over IPv6; neither is connected.
using InnerSockets = std::array<UniqueFd, 2>;

// Made in the network namespace of the process. The caller's own is `home`; the calling thread
// returns there.
Result<InnerSockets> open_inner_sockets(int pidfd, int home);

}  // namespace atl::os
