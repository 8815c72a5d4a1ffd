#include "http/message.h"

namespace atl::http {

const std::string& PathParams::get(std::string_view name) const {
  static const std::string kNone;
  for (const auto& [key, value] : values_) {
    if (key == name) return value;
  }
  return kNone;
}

Response Response::json(std::string body, int status) {
  Response response;
  response.status = status;
  response.headers.add("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

Response Response::text(std::string body, int status) {
  Response response;
  response.status = status;
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  response.body = std::move(body);
  return response;
}

Response Response::empty(int status) {
  Response response;
  response.status = status;
  return response;
}

}  // namespace atl::http
