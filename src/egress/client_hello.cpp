#include "egress/client_hello.h"

#include <algorithm>
#include <cstdint>

namespace atl::egress {
namespace {

constexpr uint8_t kHandshake = 22;
constexpr uint8_t kHelloType = 1;
constexpr uint16_t kServerName = 0;

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
  uint32_t number(size_t size) {
    if (bytes_.size() < size) return stop();
    uint32_t value = 0;
    for (size_t i = 0; i < size; i++) value = value << 8 | static_cast<uint8_t>(bytes_[i]);
    bytes_.remove_prefix(size);
    return value;
  }
  std::string_view take(size_t size) {
    if (bytes_.size() < size) {
      stop();
      return {};
    }
    std::string_view part = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return part;
  }
  std::string_view sized(size_t bytes_of_size) { return take(number(bytes_of_size)); }
  bool ok() const { return ok_; }
  bool empty() const { return bytes_.empty(); }

 private:
  uint32_t stop() {
    ok_ = false;
    bytes_ = {};
    return 0;
  }
  std::string_view bytes_;
  bool ok_ = true;
};

// Handshake bytes of all records; false where this is no TLS.
bool gather(std::string_view bytes, std::string& handshake) {
  while (!bytes.empty()) {
    if (static_cast<uint8_t>(bytes[0]) != kHandshake) return false;
    if (bytes.size() > 1 && bytes[1] != 3) return false;
    if (bytes.size() < 5) return true;
    size_t size =
        static_cast<size_t>(static_cast<uint8_t>(bytes[3])) << 8 | static_cast<uint8_t>(bytes[4]);
    if (size == 0 || size > 16384) return false;
    std::string_view part = bytes.substr(5, size);
    handshake.append(part);
    bytes.remove_prefix(5 + part.size());
    if (handshake.size() > kMaxClientHello) return false;
    if (handshake.size() >= 4) {
      Cursor cursor(handshake);
      cursor.number(1);
      if (handshake.size() >= 4 + cursor.number(3)) return true;
    }
  }
  return true;
}

// An extension that occurs twice, or a list with several names, is nobody's honest hello.
bool read_server_name(std::string_view data, std::string& name) {
  Cursor cursor(data);
  Cursor list(cursor.sized(2));
  if (!cursor.ok() || !cursor.empty() || !name.empty()) return false;
  uint32_t type = list.number(1);
  std::string_view text = list.sized(2);
  if (!list.ok() || !list.empty() || type != 0 || text.empty()) return false;
  name = text;
  return true;
}

}  // namespace

ClientHello read_client_hello(std::string_view bytes) {
  ClientHello hello;
  std::string handshake;
  auto refuse = [&] {
    hello.state = ClientHello::State::NotTls;
    hello.server_name.clear();
    return hello;
  };
  if (!gather(bytes, handshake)) return refuse();
  if (!handshake.empty() && static_cast<uint8_t>(handshake[0]) != kHelloType) return refuse();
  if (handshake.size() < 4) return hello;
  Cursor message(handshake);
  message.number(1);
  uint32_t size = message.number(3);
  if (size > kMaxClientHello) return refuse();
  std::string_view body = message.take(size);
  if (!message.ok()) return hello;  // the rest is on its way
  Cursor cursor(body);
  cursor.take(2 + 32);  // version, random
  cursor.sized(1);      // session
  cursor.sized(2);      // ciphers
  cursor.sized(1);      // compression
  if (!cursor.ok()) return refuse();
  hello.state = ClientHello::State::Whole;
  if (cursor.empty()) return hello;
  Cursor extensions(cursor.sized(2));
  if (!cursor.ok() || !cursor.empty()) return refuse();
  while (!extensions.empty() && extensions.ok()) {
    uint32_t type = extensions.number(2);
    std::string_view data = extensions.sized(2);
    if (!extensions.ok()) return refuse();
    if (type == kServerName && !read_server_name(data, hello.server_name)) return refuse();
  }
  return hello;
}

}  // namespace atl::egress
