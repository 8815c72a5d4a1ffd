#include "agent/lent_sockets.h"

#include <string.h>
#include <sys/socket.h>

#include "wire/agent_messages.h"

namespace atl::agent {
namespace {

// Room for one list of descriptors.
struct Control {
  alignas(cmsghdr) char bytes[CMSG_SPACE(wire::kMaxSuspended * sizeof(int))];
};

}  // namespace

void send_with_sockets(int fd, std::string_view bytes, const std::vector<UniqueFd>& sockets) {
  Control control{};
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!sockets.empty()) {
    size_t size = sockets.size() * sizeof(int);
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    unsigned char* at = CMSG_DATA(header);
    for (const UniqueFd& socket : sockets) {
      int number = socket.get();
      memcpy(at, &number, sizeof number);
      at += sizeof number;
    }
  }
  (void)sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t receive_with_sockets(int fd, std::span<char> space, std::vector<UniqueFd>& sockets) {
  Control control{};
  iovec part{space.data(), space.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got <= 0) return got;
  cmsghdr* header = CMSG_FIRSTHDR(&message);  // the kernel makes one list of all
  bool rights =
      header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS;
  size_t count = rights ? (header->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
  for (size_t i = 0; i < count; i++) {
    int number = -1;
    memcpy(&number, CMSG_DATA(header) + i * sizeof(int), sizeof number);
    sockets.emplace_back(number);
  }
  return got;
}

}  // namespace atl::agent
