#include "http/head_writer.h"

#include <time.h>

#include <array>

#include "http/status.h"

namespace atl::http {
namespace {

bool is_framing(std::string_view name) {
  return equals_ignoring_case(name, "Content-Length") ||
         equals_ignoring_case(name, "Transfer-Encoding");
}

Result<void> append_fields(std::string& out, const Headers& headers, std::string_view skipped) {
  for (const Field& field : headers) {
    if (is_framing(field.name) || equals_ignoring_case(field.name, skipped)) continue;
    if (!is_token(field.name) || !is_field_value(field.value)) {
      return fail(ErrorCode::Internal, "header field '" + field.name + "' cannot be sent");
    }
    out.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  return {};
}

void append_framing(std::string& out, BodyKind body, uint64_t length) {
  if (body == BodyKind::Length) {
    out.append("Content-Length: ").append(std::to_string(length)).append("\r\n");
  } else if (body == BodyKind::Chunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  }
}

// Formatting a date costs more than the rest of the head, and it changes once a second.
std::string_view date_line() {
  static thread_local time_t cached_second = 0;
  static thread_local std::array<char, 48> text{};
  static thread_local size_t length = 0;
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (now.tv_sec != cached_second) {
    tm utc{};
    gmtime_r(&now.tv_sec, &utc);
    length = strftime(text.data(), text.size(), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc);
    cached_second = now.tv_sec;
  }
  return {text.data(), length};
}

}  // namespace

Result<std::string> format_response_head(const ResponseHeadOptions& options,
                                         const Headers& headers) {
  std::string out;
  out.reserve(256);
  out.append("HTTP/1.1 ").append(std::to_string(options.status)).append(" ");
  out.append(reason_phrase(options.status)).append("\r\n").append(date_line());
  ATOLL_TRY(append_fields(out, headers, "Connection"));
  append_framing(out, options.body, options.length);
  if (!options.connection.empty()) {
    out.append("Connection: ").append(options.connection).append("\r\n");
  }
  out.append("\r\n");
  return out;
}

Result<std::string> format_last_response(const Response& response) {
  ResponseHeadOptions options;
  options.status = response.status;
  options.length = response.body.size();
  options.connection = "close";
  ATOLL_ASSIGN(std::string text, format_response_head(options, response.headers));
  return text + response.body;
}

Result<std::string> format_request_head(const RequestHeadOptions& options, const Headers& headers) {
  bool target_ok = is_field_value(options.target) && options.target.starts_with('/') &&
                   options.target.find_first_of(" \t#") == std::string_view::npos;
  if (!is_token(options.method) || !target_ok) {
    return fail(ErrorCode::InvalidArgument, "malformed request line");
  }
  std::string out;
  out.reserve(256);
  out.append(options.method).append(" ").append(options.target).append(" HTTP/1.1\r\n");
  if (!headers.contains("Host")) out.append("Host: ").append(options.host).append("\r\n");
  ATOLL_TRY(append_fields(out, headers, {}));
  append_framing(out, options.body, options.length);
  out.append("\r\n");
  return out;
}

}  // namespace atl::http
