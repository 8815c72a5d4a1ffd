// The first message of a TLS client, read for the name it asks for.
#pragma once

#include <string>
#include <string_view>

namespace atl::egress {

struct ClientHello {
  enum class State { Incomplete, NotTls, Whole };
  State state = State::Incomplete;
  std::string server_name;  // as sent; empty: it names none
};

inline constexpr size_t kMaxClientHello = 16 * 1024;

// Of the bytes that have come so far; a hello in several records is put together.
ClientHello read_client_hello(std::string_view bytes);

}  // namespace atl::egress
