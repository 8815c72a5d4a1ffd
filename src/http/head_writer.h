// Message heads from values to bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/headers.h"
#include "http/message.h"

namespace atl::http {

enum class BodyKind { None, Length, Chunked, UntilClose };

struct ResponseHeadOptions {
  int status = 200;
  BodyKind body = BodyKind::Length;
  uint64_t length = 0;
  std::string_view connection;  // "close", "keep-alive" or empty
};

// Framing fields among `headers` are dropped: they are the connection's to choose. Fails on a field
// that would end its line early, as that would let its source write the rest of the response.
Result<std::string> format_response_head(const ResponseHeadOptions& options,
                                         const Headers& headers);

// Head and body of an answer after which the connection closes.
Result<std::string> format_last_response(const Response& response);

struct RequestHeadOptions {
  std::string_view method;
  std::string_view target;
  std::string_view host;
  BodyKind body = BodyKind::None;
  uint64_t length = 0;
};
Result<std::string> format_request_head(const RequestHeadOptions& options, const Headers& headers);

}  // namespace atl::http
