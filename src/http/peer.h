#pragma once

#include "base/result.h"
#include "http/message.h"

namespace atl::http {

// Asks the kernel who is at the other end of a connected socket.
Result<Peer> peer_of(int fd);

}  // namespace atl::http
