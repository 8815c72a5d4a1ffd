// Sockets that travel with a message on another.
#pragma once

#include <sys/types.h>

#include <span>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace atl::agent {

void send_with_sockets(int fd, std::string_view bytes, const std::vector<UniqueFd>& sockets);
// As recv() does, with the sockets that come along.
ssize_t receive_with_sockets(int fd, std::span<char> space, std::vector<UniqueFd>& sockets);

}  // namespace atl::agent
