// Bytes as a client could send them, through everything of the request path that does no input or
// output: the head, then a chunked body as the head announces it. Besides not crashing, what is
// accepted must be unambiguous: the head must read the same however the bytes are cut, and one
// message must never be delimited in two ways.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "http/chunked.h"
#include "http/head_parser.h"
#include "http/router.h"

namespace {

using namespace atl::http;

void require(bool condition) {
  if (!condition) abort();
}

// The body's end within `input`, if it is there.
void decode_chunks(std::string_view input) {
  ChunkedDecoder decoder;
  while (!input.empty() && !decoder.done()) {
    if (decoder.data_left() > 0) {
      size_t count = std::min<uint64_t>(decoder.data_left(), input.size());
      decoder.consume_data(count);
      input.remove_prefix(count);
      continue;
    }
    auto used = decoder.feed(input);
    if (!used) return;
    require(*used > 0);
    input.remove_prefix(*used);
  }
}

void check_accepted(const RequestHead& head) {
  const Headers& headers = head.request.headers;
  require(head.framing.chunked != head.framing.length.has_value());
  require(headers.count("Content-Length") + headers.count("Transfer-Encoding") <= 1);
  require(head.request.path.find('\0') == std::string::npos);
  require(head.encoded_path.starts_with('/'));
  for (const Field& field : headers) {
    require(is_token(field.name) && is_field_value(field.value));
  }
}

const Router& router() {
  static const Router built = [] {
    Router routes;
    Handler handler = [](Request&, ResponseWriter&) -> atl::Task<void> { co_return; };
    routes.add("GET", "/v1/sandboxes/{id}", handler);
    routes.add("POST", "/v1/sandboxes", handler);
    routes.add("GET", "/v1/sandboxes/{id}/runtime/fs/download/{path...}", handler);
    return routes;
  }();
  return built;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  const HeadLimits limits{1024, 512};
  HeadScanner whole;
  auto length = whole.scan(input, limits);
  HeadScanner cut;
  auto piecewise = cut.scan(input.substr(0, size / 2), limits);
  if (piecewise && !*piecewise) piecewise = cut.scan(input, limits);
  require(length.has_value() == piecewise.has_value());
  if (!length || !*length) return 0;
  require(*length == *piecewise);
  auto head = parse_request_head(input.substr(0, **length), limits);
  if (!head) return 0;
  check_accepted(*head);
  (void)router().find(head->request.method, head->encoded_path);
  if (head->framing.chunked) decode_chunks(input.substr(**length));
  return 0;
}
