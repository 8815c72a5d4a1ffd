#pragma once

#include "base/result.h"
#include "http/message.h"

namespace atl::http {

// Asks the kernel who is at the other end of a connected socket. Fails where a TCP client has reset
// the connection: what it sent before can still be read, so such a connection must be dropped.
Result<Peer> peer_of(int fd);

}  // namespace atl::http
