// Netlink messages built by hand: attributes nested in attributes, several messages in one send.
#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::os {

class NetlinkBatch {
 public:
  // Starts a message; its attributes follow.
  void begin(uint16_t type, uint16_t flags, const void* header, size_t header_size);
  void put(uint16_t type, const void* data, size_t size);
  void put(uint16_t type, std::string_view text);  // with the NUL that the kernel wants
  template <class T>
  void put_value(uint16_t type, const T& value) {
    put(type, &value, sizeof value);
  }
  void put_be32(uint16_t type, uint32_t value);
  size_t open(uint16_t type);  // a nested attribute, until close()
  void close(size_t at);

  const std::string& bytes();

 private:
  void finish();
  void pad();

  std::string bytes_;
  size_t message_ = std::string::npos;
  uint32_t sequence_ = 1;
};

// Sends the batch on a socket of this protocol in the present network namespace and reads until the
// message that asked for an answer has one. The first refusal is the error.
Result<void> send_netlink(int protocol, std::string_view bytes, std::string_view what);

}  // namespace atl::os
