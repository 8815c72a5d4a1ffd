#include "api/preview/page.h"

#include "http/status.h"

namespace atl::api::preview {
namespace {

struct Wording {
  int status;
  std::string_view code;
  std::string_view title;
};

Wording wording_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::Unavailable:
      return {502, "PORT_NOT_OPEN", "Nothing answers here"};
    case ErrorCode::Timeout:
      return {504, "TIMEOUT", "No answer in time"};
    case ErrorCode::InvalidState:
      return {503, "SANDBOX_NOT_RUNNING", "The sandbox does not run"};
    case ErrorCode::Unauthenticated:
      return {401, http::wire_code(code), "This is private"};
    case ErrorCode::PermissionDenied:
      return {403, http::wire_code(code), "This is not allowed"};
    case ErrorCode::NotFound:
      return {404, http::wire_code(code), "There is no such preview"};
    default:
      return {http::status_of(code), http::wire_code(code), "This did not work"};
  }
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

http::Response page(const Wording& wording, const Error& error) {
  std::string title = escaped(wording.title);
  http::Response response;
  response.status = wording.status;
  response.body =
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>" +
      title +
      "</title><style>body{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:36em;"
      "padding:0 1em;color:#222}h1{font-size:1.3em}small{color:#777}</style><h1>" +
      title + "</h1><p>" + escaped(error.message()) + ".</p><small>Atoll, " +
      std::to_string(wording.status) + "</small></html>\n";
  response.headers.add("Content-Type", "text/html; charset=utf-8");
  response.headers.add("Content-Security-Policy",
                       "default-src 'none'; style-src 'unsafe-inline'; sandbox");
  return response;
}

}  // namespace

bool is_navigation(const http::Request& request) {
  if (request.method != "GET" && request.method != "HEAD") return false;
  if (auto mode = request.headers.get("sec-fetch-mode")) return *mode == "navigate";
  return request.headers.get("accept").value_or("").find("text/html") != std::string_view::npos;
}

http::Response refusal(const http::Request& request, const Error& error) {
  Wording wording = wording_of(error.code());
  http::Response response =
      is_navigation(request) ? page(wording, error)
                             : http::error_response(wording.status, wording.code, error.message());
  response.headers.add("Cache-Control", "no-store");
  response.headers.add("Atoll-Preview", "error");  // not from the sandbox
  if (wording.status == 401) response.headers.add("WWW-Authenticate", "Bearer");
  if (wording.status == 502) response.headers.add("Retry-After", "1");
  return response;
}

}  // namespace atl::api::preview
