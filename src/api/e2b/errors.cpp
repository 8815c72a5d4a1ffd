#include "api/e2b/errors.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/connect.h"
#include "base/json_escape.h"
#include "http/status.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;

constexpr int kBadGateway = 502;
constexpr int kInsufficientStorage = 507;
constexpr std::string_view kPortField = "port";

std::string_view connect_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "invalid_argument";
    case ErrorCode::Unauthenticated:
      return "unauthenticated";
    case ErrorCode::PermissionDenied:
      return "permission_denied";
    case ErrorCode::NotFound:
    case ErrorCode::TemplateMissing:
      return "not_found";
    case ErrorCode::Conflict:
      return "already_exists";
    case ErrorCode::InvalidState:
      return "failed_precondition";
    case ErrorCode::TooLarge:
    case ErrorCode::ResourceExhausted:
    case ErrorCode::NoSpace:
      return "resource_exhausted";
    case ErrorCode::NotSupported:
      return "unimplemented";
    case ErrorCode::Timeout:
      return "deadline_exceeded";
    case ErrorCode::Cancelled:
      return "canceled";
    case ErrorCode::Unavailable:
      return "unavailable";
    case ErrorCode::Internal:
      return "internal";
  }
  return "unknown";
}

// The Connect protocol's own table.
int connect_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
    case ErrorCode::InvalidState:
      return 400;
    case ErrorCode::NotSupported:
      return 501;
    case ErrorCode::Timeout:
      return 504;
    case ErrorCode::TooLarge:
    case ErrorCode::NoSpace:
      return 429;
    case ErrorCode::Cancelled:
      return 499;
    default:
      return http::status_of(code);
  }
}

std::string plain_json(int status, const Error& error) {
  json::object body{{"code", status}, {"message", to_valid_utf8(error.message())}};
  if (!error.field().empty()) body["fields"] = json::array{error.field()};
  return json::serialize(body);
}

bool is_rpc(const http::Request& request) {
  return request.path.starts_with("/process.") || request.path.starts_with("/filesystem.");
}

http::Response unreachable(const http::Request& request, std::string_view message) {
  json::object body{{"sandboxId", to_valid_utf8(request.param("id"))},
                    {"message", message},
                    {"code", kBadGateway}};
  return http::Response::json(json::serialize(body), kBadGateway);
}

}  // namespace

Error port_not_open(const std::string& port) {
  return Error(ErrorCode::InvalidState,
               "The sandbox is running but port is not open: nothing answers on " + port)
      .with_field(kPortField);
}

std::string connect_error_json(const Error& error) {
  return json::serialize(json::object{{"code", connect_code(error.code())},
                                      {"message", to_valid_utf8(error.message())}});
}

http::Response control_error(const http::Request&, const Error& error) {
  int status = http::status_of(error.code());
  http::Response response = http::Response::json(plain_json(status, error), status);
  if (error.retry_after_ms() != 0) {
    response.headers.add("Retry-After", std::to_string((error.retry_after_ms() + 999) / 1000));
  }
  return response;
}

http::Response sandbox_error(const http::Request& request, const Error& error) {
  if (error.code() == ErrorCode::InvalidState && error.field() == kPortField) {
    return unreachable(request, error.message());
  }
  // Whoever has no valid token learns nothing about what there is.
  if (error.code() == ErrorCode::Unauthenticated || error.code() == ErrorCode::InvalidState) {
    return unreachable(request, "The sandbox was not found");
  }
  if (is_rpc(request)) {
    if (is_stream(request)) return stream_refusal(error);
    return http::Response::json(connect_error_json(error), connect_status(error.code()));
  }
  int status =
      error.code() == ErrorCode::NoSpace ? kInsufficientStorage : http::status_of(error.code());
  if (error.code() == ErrorCode::PermissionDenied) status = 401;
  return http::Response::json(plain_json(status, error), status);
}

}  // namespace atl::api::e2b
