// The first bytes of a connection and the heads that follow: what is taken for HTTP, and what a
// request's Host may say.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "egress/http_relay.h"
#include "egress/redactor.h"
#include "http/head_parser.h"

using namespace atl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto start = egress::looks_like_http(bytes);
  if (start == egress::HttpStart::Yes && bytes.find(' ') == bytes.npos) abort();
  // A value is hidden however the bytes are cut.
  static const std::vector<std::string> kHidden = {"secret"};
  egress::Redactor redactor(kHidden);
  std::string out;
  for (size_t at = 0; at < size; at += 3) out += redactor.feed(bytes.substr(at, 3));
  out += redactor.finish();
  if (out.size() != size || out.find("secret") != out.npos) abort();
  http::HeadLimits limits;
  http::HeadScanner scanner;
  auto found = scanner.scan(bytes, limits);
  if (found && *found) (void)http::parse_response_head(bytes.substr(0, **found));
  return 0;
}
