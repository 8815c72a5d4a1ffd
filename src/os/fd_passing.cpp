#include "os/fd_passing.h"

#include <string.h>
#include <sys/socket.h>

namespace atl::os {

Result<SocketPair> make_socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("socketpair");
  return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<void> send_with_fds(int socket, std::string_view bytes, const std::vector<int>& fds) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0) return fail_errno("sendmsg");
  return {};
}

static Result<size_t> receive(int socket, std::span<char> buffer, size_t max_fds, int flags,
                              std::vector<UniqueFd>& fds) {
  iovec part{buffer.data(), buffer.size()};
  std::vector<char> control(CMSG_SPACE(max_fds * sizeof(int)));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
  if (size < 0) return fail_errno("recvmsg");
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
  if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
    return fail(ErrorCode::InvalidArgument, "a message was longer than allowed");
  }
  return static_cast<size_t>(size);
}

Result<size_t> receive_into(int socket, std::span<char> buffer, size_t max_fds,
                            std::vector<UniqueFd>& fds) {
  return receive(socket, buffer, max_fds, MSG_DONTWAIT, fds);
}

Result<ReceivedMessage> receive_with_fds(int socket, size_t max_bytes, size_t max_fds) {
  ReceivedMessage received;
  received.bytes.resize(max_bytes);
  ATOLL_ASSIGN(size_t size, receive(socket, received.bytes, max_fds, 0, received.fds));
  received.bytes.resize(size);
  return received;
}

}  // namespace atl::os
