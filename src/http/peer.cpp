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

}  // namespace

Result<Peer> peer_of(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) {
    return fail_errno("getpeername");
  }
  if (storage.ss_family == AF_UNIX) return unix_peer(fd);

  Peer peer;
  peer.kind = Peer::Kind::Tcp;
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* address = nullptr;
  if (storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    address = &v4->sin_addr;
    peer.port = ntohs(v4->sin_port);
  } else {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
    address = &v6->sin6_addr;
    peer.port = ntohs(v6->sin6_port);
  }
  if (inet_ntop(storage.ss_family, address, text.data(), text.size()) != nullptr) {
    peer.address = text.data();
  }
  return peer;
}

}  // namespace atl::http
