#include "http/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>

namespace atl::http {
namespace {

Result<Peer> unix_peer(int fd) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return fail_errno("getsockopt SO_PEERCRED");
  }
  Peer peer;
  peer.kind = Peer::Kind::Unix;
  peer.uid = credentials.uid;
  peer.gid = credentials.gid;
  peer.pid = credentials.pid;
  return peer;
}

std::string text_of(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(family, address, text.data(), text.size());
  return text.data();
}

}  // namespace

Result<Peer> peer_of(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) {
    return fail_errno("getpeername");
  }
  if (storage.ss_family == AF_UNIX) return unix_peer(fd);

  Peer peer;
  if (storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    peer.address = text_of(AF_INET, &v4->sin_addr);
    peer.port = ntohs(v4->sin_port);
    return peer;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
  peer.port = ntohs(v6->sin6_port);
  // A listener for both families shows IPv4 clients as "::ffff:192.0.2.1".
  bool mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
  peer.address =
      mapped ? text_of(AF_INET, &v6->sin6_addr.s6_addr[12]) : text_of(AF_INET6, &v6->sin6_addr);
  return peer;
}

}  // namespace atl::http
