#include "http/status.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "base/json_escape.h"

namespace atl::http {
namespace {

struct Row {
  ErrorCode code;
  int status;
  std::string_view wire;
};

// Where two codes share a status, the first is what a client reads from the status alone.
constexpr std::array kRows = {
    Row{ErrorCode::InvalidArgument, 400, "VALIDATION_ERROR"},
    Row{ErrorCode::Unauthenticated, 401, "AUTH_ERROR"},
    Row{ErrorCode::PermissionDenied, 403, "FORBIDDEN"},
    Row{ErrorCode::NotFound, 404, "NOT_FOUND"},
    Row{ErrorCode::TemplateMissing, 404, "TEMPLATE_NOT_FOUND"},
    Row{ErrorCode::Timeout, 408, "TIMEOUT"},
    Row{ErrorCode::Conflict, 409, "CONFLICT"},
    Row{ErrorCode::InvalidState, 409, "INVALID_STATE"},
    Row{ErrorCode::TooLarge, 413, "PAYLOAD_TOO_LARGE"},
    Row{ErrorCode::ResourceExhausted, 429, "QUOTA_EXCEEDED"},
    Row{ErrorCode::Cancelled, 499, "CANCELLED"},
    Row{ErrorCode::Internal, 500, "SERVER_ERROR"},
    Row{ErrorCode::NotSupported, 501, "NOT_SUPPORTED"},
    Row{ErrorCode::Unavailable, 503, "UNAVAILABLE"},
    Row{ErrorCode::NoSpace, 507, "NO_SPACE"},
};

const Row& row_of(ErrorCode code) {
  for (const Row& row : kRows) {
    if (row.code == code) return row;
  }
  return row_of(ErrorCode::Internal);
}

std::string details(std::string_view code, std::string_view message, std::string_view field = {},
                    uint32_t retry_after_ms = 0) {
  std::string out = "\"code\":";
  append_json_string(out, code);
  out.append(",\"message\":");
  append_json_string(out, message);
  if (!field.empty()) {
    out.append(",\"fields\":[");
    append_json_string(out, field);
    out.push_back(']');
  }
  if (retry_after_ms > 0) out.append(",\"retryAfterMs\":" + std::to_string(retry_after_ms));
  return out;
}

Response failure(int status, const std::string& detail) {
  return Response::json("{\"success\":false,\"error\":{" + detail + "}," + detail + "}", status);
}

std::string text_of(const boost::json::object& object, std::string_view key) {
  const boost::json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return {};
  return std::string(value->get_string());
}

uint32_t wait_of(const boost::json::object& object) {
  const boost::json::value* value = object.if_contains("retryAfterMs");
  if (value == nullptr || !value->is_int64()) return 0;
  return static_cast<uint32_t>(std::clamp<int64_t>(value->get_int64(), 0, UINT32_MAX));
}

}  // namespace

int status_of(ErrorCode code) { return row_of(code).status; }
std::string_view wire_code(ErrorCode code) { return row_of(code).wire; }

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Unknown";
  }
}

Response error_response(const Error& error) {
  uint32_t wait_ms = error.retry_after_ms();
  Response response =
      failure(status_of(error.code()),
              details(wire_code(error.code()), error.message(), error.field(), wait_ms));
  // The header knows whole seconds only; too early would be refused again.
  if (wait_ms > 0) response.headers.set("Retry-After", std::to_string((wait_ms - 1) / 1000 + 1));
  return response;
}

Response error_response(int status, std::string_view code, std::string_view message) {
  return failure(status, details(code, message));
}

ErrorCode error_code_of(int status, std::string_view wire) {
  for (const Row& row : kRows) {
    if (row.wire == wire) return row.code;
  }
  for (const Row& row : kRows) {
    if (row.status == status) return row.code;
  }
  if (status == 502 || status == 504) return ErrorCode::Unavailable;
  return status >= 400 && status < 500 ? ErrorCode::InvalidArgument : ErrorCode::Internal;
}

Error error_from_response(int status, std::string_view body) {
  boost::system::error_code bad;
  boost::json::value parsed = boost::json::parse(body, bad);
  if (bad || !parsed.is_object()) {
    return Error(error_code_of(status, {}), "server answered " + std::to_string(status));
  }
  const boost::json::object* detail = &parsed.get_object();
  if (const auto* nested = detail->if_contains("error"); nested && nested->is_object()) {
    detail = &nested->get_object();
  }
  std::string message = text_of(*detail, "message");
  if (message.empty()) message = "server answered " + std::to_string(status);
  Error error = Error(error_code_of(status, text_of(*detail, "code")), std::move(message))
                    .with_retry_after(wait_of(*detail));
  const auto* fields = detail->if_contains("fields");
  if (fields && fields->is_array() && !fields->get_array().empty() &&
      fields->get_array()[0].is_string()) {
    return std::move(error).with_field(fields->get_array()[0].get_string());
  }
  return error;
}

}  // namespace atl::http
