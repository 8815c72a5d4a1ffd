// What a client may send first. The name that is found must be in the bytes, and more bytes must
// not change a verdict once it is given.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "egress/client_hello.h"
#include "egress/name.h"

using namespace atl::egress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ClientHello hello = read_client_hello(bytes);
  if (hello.state == ClientHello::State::Whole) {
    if (auto name = canonical_name(hello.server_name)) {
      if (canonical_name(*name) != name) abort();
    }
    if (read_client_hello(std::string(bytes) + std::string(7, '\x17')).server_name !=
        hello.server_name)
      abort();
  } else if (!hello.server_name.empty()) {
    abort();
  }
  return 0;
}
