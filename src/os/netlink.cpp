#include "os/netlink.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "base/unique_fd.h"

namespace atl::os {

void NetlinkBatch::pad() { bytes_.resize((bytes_.size() + 3) & ~size_t{3}); }

void NetlinkBatch::finish() {
  if (message_ == std::string::npos) return;
  auto size = static_cast<uint32_t>(bytes_.size() - message_);
  memcpy(bytes_.data() + message_, &size, sizeof size);
  message_ = std::string::npos;
}

void NetlinkBatch::begin(uint16_t type, uint16_t flags, const void* header, size_t header_size) {
  finish();
  message_ = bytes_.size();
  nlmsghdr head{};
  head.nlmsg_type = type;
  head.nlmsg_flags = flags;
  head.nlmsg_seq = sequence_++;
  bytes_.append(reinterpret_cast<const char*>(&head), sizeof head);
  bytes_.append(static_cast<const char*>(header), header_size);
  pad();
}

void NetlinkBatch::put(uint16_t type, const void* data, size_t size) {
  nlattr head{.nla_len = static_cast<uint16_t>(sizeof(nlattr) + size), .nla_type = type};
  bytes_.append(reinterpret_cast<const char*>(&head), sizeof head);
  bytes_.append(static_cast<const char*>(data), size);
  pad();
}

void NetlinkBatch::put(uint16_t type, std::string_view text) {
  std::string with_end(text);
  put(type, with_end.c_str(), with_end.size() + 1);
}

void NetlinkBatch::put_be32(uint16_t type, uint32_t value) { put_value(type, htonl(value)); }

size_t NetlinkBatch::open(uint16_t type) {
  size_t at = bytes_.size();
  nlattr head{.nla_len = 0, .nla_type = static_cast<uint16_t>(type | NLA_F_NESTED)};
  bytes_.append(reinterpret_cast<const char*>(&head), sizeof head);
  return at;
}

void NetlinkBatch::close(size_t at) {
  auto size = static_cast<uint16_t>(bytes_.size() - at);
  memcpy(bytes_.data() + at, &size, sizeof size);
}

const std::string& NetlinkBatch::bytes() {
  finish();
  return bytes_;
}

Result<void> send_netlink(int protocol, std::string_view bytes, std::string_view what) {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (!socket.valid()) return fail_errno("socket", "netlink");
  timeval patience{.tv_sec = 5, .tv_usec = 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  ssize_t sent = sendto(socket.get(), bytes.data(), bytes.size(), 0,
                        reinterpret_cast<sockaddr*>(&kernel), sizeof kernel);
  if (sent < 0) return fail_errno("send", what);
  for (;;) {
    char reply[8192];
    ssize_t size = recv(socket.get(), reply, sizeof reply, 0);
    if (size < 0) return fail_errno("recv", what);
    auto left = static_cast<size_t>(size);
    for (auto* head = reinterpret_cast<nlmsghdr*>(reply); NLMSG_OK(head, left);
         head = NLMSG_NEXT(head, left)) {
      if (head->nlmsg_type != NLMSG_ERROR) continue;
      auto* error = static_cast<nlmsgerr*>(NLMSG_DATA(head));
      if (error->error == 0) return {};
      errno = -error->error;
      return fail_errno("netlink", what);
    }
  }
}

}  // namespace atl::os
