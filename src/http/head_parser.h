// Message heads in bytes to message heads in values; no input or output. The parsing is Beast's,
// and this adds the refusals that keep two parsers from seeing two different messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "http/message.h"

namespace atl::http {

// A refusal that is answered and then ends the connection.
struct ProtocolError {
  int status = 400;
  std::string message;
};
template <class T>
using Parsed = tl::expected<T, ProtocolError>;

struct HeadLimits {
  size_t head_bytes = 16 * 1024;
  size_t target_bytes = 8 * 1024;
};

// Looks for the blank line that ends a head, remembering how far it got between calls. Refuses
// line ends other than CRLF, folded lines and control characters as soon as they arrive.
class HeadScanner {
 public:
  // The head's length including the blank line, or none while it is incomplete.
  Parsed<std::optional<size_t>> scan(std::string_view input, const HeadLimits& limits);
  void reset() { *this = HeadScanner(); }

 private:
  size_t checked_ = 0;
  size_t line_start_ = 0;
};

// How the body is delimited.
struct Framing {
  bool chunked = false;
  std::optional<uint64_t> length;  // for responses: neither means until the connection ends
};

struct RequestHead {
  Request request;
  Framing framing;
  bool keep_alive = true;
  bool expects_continue = false;
  std::string encoded_path;
};
// `head` is what scan() measured.
Parsed<RequestHead> parse_request_head(std::string_view head, const HeadLimits& limits);

struct ResponseHead {
  int status = 0;
  Headers headers;
  Framing framing;
  bool keep_alive = true;
};
Parsed<ResponseHead> parse_response_head(std::string_view head);

}  // namespace atl::http
