#include "http/socket_calls.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

namespace atl::http {
namespace {

constexpr int kSendFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

ssize_t send_parts(int fd, const WriteParts& parts) {
  std::array<iovec, std::tuple_size_v<WriteParts>> vectors{};
  msghdr message{};
  message.msg_iov = vectors.data();
  for (std::string_view part : parts) {
    if (part.empty()) continue;
    vectors[message.msg_iovlen++] = {const_cast<char*>(part.data()), part.size()};
  }
  return ::sendmsg(fd, &message, kSendFlags);
}

}  // namespace

void drop_front(WriteParts& parts, size_t bytes) {
  for (std::string_view& part : parts) {
    size_t count = std::min(bytes, part.size());
    part.remove_prefix(count);
    bytes -= count;
  }
}

Result<bool> send_now(int fd, WriteParts& parts) {
  bool single = parts[1].empty() && parts[2].empty();
  if (single && parts[0].empty()) return true;
  ssize_t sent = 0;
  do {
    sent =
        single ? ::send(fd, parts[0].data(), parts[0].size(), kSendFlags) : send_parts(fd, parts);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    if (errno == EAGAIN) return false;
    return fail_errno("sendmsg");
  }
  drop_front(parts, static_cast<size_t>(sent));
  return std::all_of(parts.begin(), parts.end(), [](std::string_view p) { return p.empty(); });
}

Result<std::optional<size_t>> receive_now(int fd, std::span<char> into) {
  ssize_t got = 0;
  do {
    got = ::recv(fd, into.data(), into.size(), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got >= 0) return std::optional<size_t>(static_cast<size_t>(got));
  if (errno == EAGAIN) return std::optional<size_t>();
  return fail_errno("recv");
}

}  // namespace atl::http
