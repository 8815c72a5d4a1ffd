#include "egress/destination.h"

#include <arpa/inet.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/in.h>

namespace atl::egress {
namespace {

// <linux/netfilter_ipv6/ip6_tables.h> has it, and does not go with <netinet/in.h>.
constexpr int kOriginalDestination6 = 80;

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    constexpr uint32_t kLoopbackNet = 127;
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 ==
           kLoopbackNet;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

bool read_original(int fd, sockaddr_storage& address) {
  socklen_t size = sizeof address;
  return address.ss_family == AF_INET
             ? getsockopt(fd, IPPROTO_IP, SO_ORIGINAL_DST, &address, &size) == 0
             : getsockopt(fd, IPPROTO_IPV6, kOriginalDestination6, &address, &size) == 0;
}

}  // namespace

std::optional<sockaddr_storage> destination_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  // The sandbox's own loopback is not steered, so what arrives there was redirected.
  if (!is_loopback(address)) return address;
  if (!read_original(fd, address) || is_loopback(address)) return {};
  return address;
}

}  // namespace atl::egress
