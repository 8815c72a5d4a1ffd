#include "os/gate.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>

namespace atl::os {
namespace {

constexpr int kBacklog = 1024;
constexpr uint16_t kTcpPort = 1;
constexpr uint16_t kDnsPort = 53;

struct Place {
  sockaddr_storage address{};
  socklen_t size = 0;
};

Place place_of(int family, uint16_t port) {
  Place place;
  if (family == AF_INET) {
    auto& four = reinterpret_cast<sockaddr_in&>(place.address);
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    inet_pton(AF_INET, kGateV4, &four.sin_addr);
    place.size = sizeof four;
  } else {
    auto& six = reinterpret_cast<sockaddr_in6&>(place.address);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    inet_pton(AF_INET6, kGateV6, &six.sin6_addr);
    place.size = sizeof six;
  }
  return place;
}

Result<UniqueFd> make_socket(int family, int type) {
  UniqueFd fd(socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fail_errno("socket", "the gate");
  int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // An address that no interface has can be bound only so.
  setsockopt(fd.get(), IPPROTO_IP, IP_FREEBIND, &on, sizeof on);
  if (family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on);
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  bool stream = type == SOCK_STREAM;
  if (!stream && family == AF_INET) {
    setsockopt(fd.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
  }
  if (!stream && family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
  }
  Place place = place_of(family, stream ? kTcpPort : kDnsPort);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&place.address), place.size) != 0) {
    return fail_errno("bind", "the gate");
  }
  if (stream && listen(fd.get(), kBacklog) != 0) return fail_errno("listen", "the gate");
  return fd;
}

Result<Gate> open_here() {
  ATOLL_TRY(make_all_addresses_local());
  Gate gate;
  ATOLL_ASSIGN(gate.sockets[Gate::Tcp4], make_socket(AF_INET, SOCK_STREAM));
  ATOLL_ASSIGN(gate.sockets[Gate::Tcp6], make_socket(AF_INET6, SOCK_STREAM));
  ATOLL_ASSIGN(gate.sockets[Gate::Udp4], make_socket(AF_INET, SOCK_DGRAM));
  ATOLL_ASSIGN(gate.sockets[Gate::Udp6], make_socket(AF_INET6, SOCK_DGRAM));
  UniqueFd netns(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!netns.valid()) return fail_errno("open", "the network namespace");
  ATOLL_ASSIGN(gate.link, steer_by_bpf(gate.sockets, netns.get()));
  // Without it datagrams go nowhere all the same, only more slowly.
  (void)refuse_other_packets();
  return gate;
}

}  // namespace

Result<Gate> open_gate(int pidfd, int home) {
  if (setns(pidfd, CLONE_NEWNET) != 0) return fail_errno("setns", "the sandbox's network");
  Result<Gate> gate = open_here();
  // Failing to come home would leave a privileged process in a sandbox's namespace.
  if (setns(home, CLONE_NEWNET) != 0) abort();
  return gate;
}

}  // namespace atl::os
