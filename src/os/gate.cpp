#include "os/gate.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "os/loopback.h"

namespace atl::os {
namespace {

constexpr int kBacklog = 1024;

struct Place {
  sockaddr_storage address{};
  socklen_t size = 0;
};

// A program steers to any socket. Redirected packets arrive at loopback addresses.
Place place_of(int family, uint16_t port, Steering steering) {
  bool loopback = steering == Steering::Redirection;
  Place place;
  if (family == AF_INET) {
    auto& four = reinterpret_cast<sockaddr_in&>(place.address);
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    inet_pton(AF_INET, loopback ? "127.0.0.1" : kGateV4, &four.sin_addr);
    place.size = sizeof four;
  } else {
    auto& six = reinterpret_cast<sockaddr_in6&>(place.address);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    inet_pton(AF_INET6, loopback ? "::1" : kGateV6, &six.sin6_addr);
    place.size = sizeof six;
  }
  return place;
}

Result<UniqueFd> make_socket(int family, int type, Steering steering) {
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
  Place place = place_of(family, stream ? kGateTcpPort : kGateDnsPort, steering);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&place.address), place.size) != 0) {
    return fail_errno("bind", "the gate");
  }
  if (stream && listen(fd.get(), kBacklog) != 0) return fail_errno("listen", "the gate");
  return fd;
}

Result<Gate> open_here(Steering steering) {
  ATOLL_TRY(make_all_addresses_local());
  Gate gate;
  ATOLL_ASSIGN(gate.sockets[Gate::Tcp4], make_socket(AF_INET, SOCK_STREAM, steering));
  ATOLL_ASSIGN(gate.sockets[Gate::Tcp6], make_socket(AF_INET6, SOCK_STREAM, steering));
  ATOLL_ASSIGN(gate.sockets[Gate::Udp4], make_socket(AF_INET, SOCK_DGRAM, steering));
  ATOLL_ASSIGN(gate.sockets[Gate::Udp6], make_socket(AF_INET6, SOCK_DGRAM, steering));
  UniqueFd netns(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!netns.valid()) return fail_errno("open", "the network namespace");
  if (steering == Steering::Program) {
    ATOLL_ASSIGN(gate.hold, steer_by_program(gate.sockets, netns.get()));
  } else {
    ATOLL_TRY(steer_by_redirection());
    gate.hold = std::move(netns);
  }
  // Without it datagrams go nowhere all the same, only more slowly.
  (void)refuse_other_packets();
  return gate;
}

void come_home(int home) {
  // Failing to would leave a privileged process in a sandbox's namespace.
  if (setns(home, CLONE_NEWNET) != 0) abort();
}

}  // namespace

Result<Gate> open_gate(int pidfd, int home, Steering steering) {
  if (setns(pidfd, CLONE_NEWNET) != 0) return fail_errno("setns", "the sandbox's network");
  Result<Gate> gate = open_here(steering);
  come_home(home);
  return gate;
}

Result<Gate> open_spare_gate(int home, Steering steering) {
  if (unshare(CLONE_NEWNET) != 0) return fail_errno("unshare", "network namespace");
  Result<void> up = bring_loopback_up();
  Result<Gate> gate = up ? open_here(steering) : Result<Gate>(fail(std::move(up).error()));
  come_home(home);
  return gate;
}

}  // namespace atl::os
