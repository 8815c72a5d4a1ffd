// What the parts of Client share.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>

#include "atoll/client.h"
#include "http/client.h"

namespace atl {

struct Client::Impl {
  Impl(ClientOptions given, http::Client with_timeout, http::Client without_timeout)
      : options(std::move(given)),
        quick(std::move(with_timeout)),
        patient(std::move(without_timeout)) {}

  // The body of a success; anything else is an Error.
  Result<std::string> call(http::Client& over, std::string_view method, std::string_view target,
                           std::string_view json_body);
  // A success whose body is still to be read.
  Result<http::ResponseStream> open(std::string_view target, http::Headers extra = {});
  Result<http::ResponseStream> open(std::string_view method, std::string_view target,
                                    const http::Headers& all, std::string_view body = {});
  // The response's body once it is known to be a success.
  static Result<std::string> finish(Result<http::ResponseStream> response);

  ClientOptions options;
  http::Headers headers;
  http::Client quick;    // for what the server answers at once
  http::Client patient;  // for commands, streams and transfers, which take their time
};

namespace client {

boost::json::object resources_body(const Limits& limits);
std::string sandbox_target(std::string_view sandbox, std::string_view rest = {});
std::string runtime_target(std::string_view sandbox, std::string_view rest);
// "/v1/sandboxes/web/runtime/fs/list/etc": relative paths start at /workspace.
std::string file_target(std::string_view sandbox, std::string_view verb, std::string_view path);
std::string absolute_path(std::string_view path);

}  // namespace client
}  // namespace atl
