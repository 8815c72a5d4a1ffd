// Messages with descriptors over a local socket.
#pragma once

#include <span>
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
// The same into a buffer that is there, without waiting: how many bytes; 0: the peer has closed.
Result<size_t> receive_into(int socket, std::span<char> buffer, size_t max_fds,
                            std::vector<UniqueFd>& fds);

}  // namespace atl::os
