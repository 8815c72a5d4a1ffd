// Addresses, ranges of them, and which of them no sandbox may reach.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::egress {

// IPv4 is kept as ::ffff:a.b.c.d, so that there is one kind of comparison.
class IpAddress {
 public:
  IpAddress() = default;
  static IpAddress v4(const void* four_bytes);
  static IpAddress v6(const void* sixteen_bytes);
  static std::optional<IpAddress> parse(std::string_view text);
  static IpAddress from(const sockaddr_storage& address);

  bool is_v4() const;
  const uint8_t* v4_bytes() const { return bytes_.data() + 12; }
  const std::array<uint8_t, 16>& bytes() const { return bytes_; }
  std::string text() const;
  socklen_t fill(sockaddr_storage& into, uint16_t port) const;
  auto operator<=>(const IpAddress&) const = default;

 private:
  std::array<uint8_t, 16> bytes_{};
};

uint16_t port_of(const sockaddr_storage& address);

class Subnet {
 public:
  static Result<Subnet> parse(std::string_view text);  // an address alone is itself
  bool contains(const IpAddress& address) const;
  std::string text() const;

 private:
  IpAddress base_;
  uint8_t bits_ = 128;  // of the 128
};

// What the operator says, whatever a tenant's policy may say.
class AddressGuard {
 public:
  AddressGuard() = default;
  explicit AddressGuard(std::vector<Subnet> opened) : opened_(std::move(opened)) {}
  static Result<AddressGuard> parse(std::string_view comma_separated);

  // Why this address is out of reach; nothing where it is not. Private, link-local, reserved and
  // multicast ranges, ranges that embed IPv4 addresses, and the host's own.
  std::optional<std::string> refuses(const IpAddress& address) const;
  void set_own_addresses(std::vector<IpAddress> own) { own_ = std::move(own); }

 private:
  std::vector<Subnet> opened_;
  std::vector<IpAddress> own_;
};

std::vector<IpAddress> host_addresses();

}  // namespace atl::egress
