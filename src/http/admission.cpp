#include "http/admission.h"

#include <arpa/inet.h>
#include <sys/resource.h>

#include <algorithm>
#include <unordered_map>

namespace atl::http {
namespace {

// A quarter of the descriptors is for everything that is not a connection.
size_t bounded_by_descriptors(size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  return std::min<size_t>(wanted, limit.rlim_cur - limit.rlim_cur / 4);
}

}  // namespace

struct Admission::Ticket::Counts {
  size_t all = 0;
  std::unordered_map<std::string, size_t> by_address;
};

Admission::Admission(size_t max_connections, size_t max_per_address)
    : max_connections_(bounded_by_descriptors(max_connections)),
      max_per_address_(max_per_address),
      counts_(std::make_shared<Ticket::Counts>()) {}
Admission::~Admission() = default;

Admission::Ticket::~Ticket() {
  if (!counts_) return;
  counts_->all--;
  if (address_.empty()) return;
  auto found = counts_->by_address.find(address_);
  if (--found->second == 0) counts_->by_address.erase(found);
}

size_t Admission::room_for(const Peer& peer) const {
  bool local = peer.kind == Peer::Kind::Unix;
  return local ? max_connections_ : max_connections_ - max_connections_ / 16;
}

Result<Admission::Ticket> Admission::admit(const Peer& peer) {
  if (counts_->all >= room_for(peer)) {
    return fail(ErrorCode::Unavailable, "too many connections");
  }
  std::string address = counted_address(peer);
  if (!address.empty()) {
    size_t& count = counts_->by_address[address];
    if (count >= max_per_address_) {
      if (count == 0) counts_->by_address.erase(address);
      return fail(ErrorCode::ResourceExhausted, "too many connections from your address");
    }
    count++;
  }
  counts_->all++;
  return Ticket(counts_, std::move(address));
}

std::string counted_address(const Peer& peer) {
  if (peer.kind == Peer::Kind::Unix) return {};
  in6_addr v6{};
  if (inet_pton(AF_INET6, peer.address.c_str(), &v6) != 1) {
    return peer.address.starts_with("127.") ? std::string() : peer.address;
  }
  if (IN6_IS_ADDR_LOOPBACK(&v6)) return {};
  std::fill(std::begin(v6.s6_addr) + 8, std::end(v6.s6_addr), 0);
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, &v6, text, sizeof(text));
}

}  // namespace atl::http
