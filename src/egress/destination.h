#pragma once

#include <sys/socket.h>

#include <optional>

namespace atl::egress {

// Where an accepted connection was meant to go: the address it arrived at, or what that was before
// it was redirected. Nothing for a connection that was made to the gate itself.
std::optional<sockaddr_storage> destination_of(int fd);

}  // namespace atl::egress
