// Messages with descriptors over a local socket.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::os {

// Two ends that carry whole messages; neither survives an exec.
struct SocketPair {
  UniqueFd ours;
  UniqueFd theirs;
};
Result<SocketPair> make_socket_pair();

struct ReceivedMessage {
  std::string bytes;  // empty: the peer has closed
  std::vector<UniqueFd> fds;
};

Result<void> send_with_fds(int socket, std::string_view bytes, const std::vector<int>& fds);
Result<ReceivedMessage> receive_with_fds(int socket, size_t max_bytes, size_t max_fds);

}  // namespace atl::os
