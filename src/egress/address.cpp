#include "egress/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

namespace atl::egress {
namespace {

constexpr uint8_t kV4Prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct Reserved {
  std::string_view range;
  std::string_view what;
};
constexpr Reserved kReserved[] = {
    {"0.0.0.0/8", "not an address of a host"},
    {"10.0.0.0/8", "private"},
    {"100.64.0.0/10", "private to a provider"},
    {"127.0.0.0/8", "loopback"},
    {"168.63.129.16/32", "a cloud's metadata service"},
    {"169.254.0.0/16", "link-local, where clouds keep their metadata service"},
    {"172.16.0.0/12", "private"},
    {"192.0.0.0/24", "reserved"},
    {"192.0.2.0/24", "for documentation"},
    {"192.88.99.0/24", "a relay"},
    {"192.168.0.0/16", "private"},
    {"198.18.0.0/15", "for benchmarks"},
    {"198.51.100.0/24", "for documentation"},
    {"203.0.113.0/24", "for documentation"},
    {"224.0.0.0/4", "multicast"},
    {"240.0.0.0/4", "reserved"},
    {"::/128", "not an address of a host"},
    {"::1/128", "loopback"},
    {"::/96", "an embedded IPv4 address"},
    {"64:ff9b::/96", "an embedded IPv4 address"},
    {"64:ff9b:1::/48", "an embedded IPv4 address"},
    {"100::/64", "discarded"},
    {"2001::/32", "an embedded IPv4 address"},
    {"2001:db8::/32", "for documentation"},
    {"2002::/16", "an embedded IPv4 address"},
    {"fc00::/7", "private"},
    {"fe80::/10", "link-local"},
    {"fec0::/10", "private"},
    {"ff00::/8", "multicast"},
};

struct ReservedSubnet {
  Subnet subnet;
  std::string_view what;
};

const std::vector<ReservedSubnet>& reserved() {
  static const std::vector<ReservedSubnet> list = [] {
    std::vector<ReservedSubnet> made;
    for (const Reserved& entry : kReserved) {
      made.push_back({*Subnet::parse(entry.range), entry.what});
    }
    return made;
  }();
  return list;
}

}  // namespace

IpAddress IpAddress::v4(const void* four_bytes) {
  IpAddress address;
  memcpy(address.bytes_.data(), kV4Prefix, sizeof kV4Prefix);
  memcpy(address.bytes_.data() + 12, four_bytes, 4);
  return address;
}

IpAddress IpAddress::v6(const void* sixteen_bytes) {
  IpAddress address;
  memcpy(address.bytes_.data(), sixteen_bytes, 16);
  return address;
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  std::string copy(text);
  in6_addr six{};
  in_addr four{};
  if (inet_pton(AF_INET, copy.c_str(), &four) == 1) return v4(&four);
  if (inet_pton(AF_INET6, copy.c_str(), &six) == 1) return v6(&six);
  return std::nullopt;
}

IpAddress IpAddress::from(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return v4(&reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  }
  return v6(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

uint16_t port_of(const sockaddr_storage& address) {
  // Both families keep it in the same place.
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

bool IpAddress::is_v4() const { return memcmp(bytes_.data(), kV4Prefix, sizeof kV4Prefix) == 0; }

std::string IpAddress::text() const {
  char buffer[INET6_ADDRSTRLEN];
  bool four = is_v4();
  const void* from = four ? static_cast<const void*>(v4_bytes()) : bytes_.data();
  inet_ntop(four ? AF_INET : AF_INET6, from, buffer, sizeof buffer);
  return buffer;
}

socklen_t IpAddress::fill(sockaddr_storage& into, uint16_t port) const {
  into = {};
  if (is_v4()) {
    auto& address = reinterpret_cast<sockaddr_in&>(into);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    memcpy(&address.sin_addr, v4_bytes(), 4);
    return sizeof address;
  }
  auto& address = reinterpret_cast<sockaddr_in6&>(into);
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  memcpy(&address.sin6_addr, bytes_.data(), 16);
  return sizeof address;
}

Result<Subnet> Subnet::parse(std::string_view text) {
  auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::InvalidArgument,
                "'" + std::string(text.substr(0, 64)) + "' is not a subnet: " + std::string(why));
  };
  size_t slash = text.find('/');
  auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) return refuse("write it as 192.0.2.0/24 or 2001:db8::/32");
  uint8_t most = address->is_v4() ? 32 : 128;
  uint8_t bits = most;
  if (slash != text.npos) {
    std::string_view digits = text.substr(slash + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    bool whole = error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
    if (!whole || bits > most) return refuse("the part after '/' is a number of bits");
  }
  Subnet subnet;
  subnet.bits_ = static_cast<uint8_t>(bits + (128 - most));
  std::array<uint8_t, 16> masked = address->bytes();
  for (size_t bit = subnet.bits_; bit < 128; bit++) {
    masked[bit / 8] = static_cast<uint8_t>(masked[bit / 8] & ~(0x80u >> (bit % 8)));
  }
  if (masked != address->bytes()) return refuse("bits are set behind its prefix");
  subnet.base_ = *address;
  return subnet;
}

bool Subnet::contains(const IpAddress& address) const {
  const auto& ours = base_.bytes();
  const auto& theirs = address.bytes();
  size_t whole = bits_ / 8, rest = bits_ % 8;
  if (memcmp(ours.data(), theirs.data(), whole) != 0) return false;
  if (rest == 0) return base_.is_v4() == address.is_v4();
  auto mask = static_cast<uint8_t>(0xff00u >> rest);
  return ((ours[whole] ^ theirs[whole]) & mask) == 0 && base_.is_v4() == address.is_v4();
}

std::string Subnet::text() const {
  return base_.text() + "/" + std::to_string(base_.is_v4() ? bits_ - 96 : bits_);
}

Result<AddressGuard> AddressGuard::parse(std::string_view list) {
  std::vector<Subnet> opened;
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    std::string_view one = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one.empty()) continue;
    ATOLL_ASSIGN(Subnet subnet, Subnet::parse(one));
    opened.push_back(subnet);
  }
  return AddressGuard(std::move(opened));
}

std::optional<std::string> AddressGuard::refuses(const IpAddress& address) const {
  for (const Subnet& subnet : opened_) {
    if (subnet.contains(address)) return std::nullopt;
  }
  for (const ReservedSubnet& entry : reserved()) {
    if (!entry.subnet.contains(address)) continue;
    return address.text() + " is " + std::string(entry.what);
  }
  if (std::find(own_.begin(), own_.end(), address) != own_.end()) {
    return address.text() + " is an address of this host";
  }
  return std::nullopt;
}

std::vector<IpAddress> host_addresses() {
  std::vector<IpAddress> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    if (one->ifa_addr->sa_family == AF_INET) {
      found.push_back(IpAddress::v4(&reinterpret_cast<sockaddr_in*>(one->ifa_addr)->sin_addr));
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      found.push_back(IpAddress::v6(&reinterpret_cast<sockaddr_in6*>(one->ifa_addr)->sin6_addr));
    }
  }
  return found;
}

}  // namespace atl::egress
