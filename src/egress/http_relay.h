// HTTP/1.1 between a sandbox and the servers it may reach, request by request: each is judged, and
// changed as its rules say.
#pragma once

#include <memory>
#include <string>

#include "egress/connection.h"
#include "egress/redactor.h"
#include "http/chunked.h"
#include "http/head_parser.h"
#include "http/input_buffer.h"

namespace atl::egress {

enum class HttpStart { Yes, No, Unclear };
// Whether a connection's first bytes are those of a request.
HttpStart looks_like_http(std::string_view bytes);

class HttpRelay {
 public:
  // `tls_name` is what the client asked for in its hello; empty: it speaks in the clear.
  HttpRelay(Connection& connection, http::Socket& client, std::string tls_name)
      : connection_(connection), client_(client), tls_name_(std::move(tls_name)) {}

  Task<Result<void>> run();

 private:
  struct Exchange {
    http::RequestHead head;
    std::string host;  // canonical
    uint16_t port = 0;
    int permit = -1;
    Outlet::PolicyPtr policy;  // the plan points into it
    RequestPlan plan;
    bool head_request = false;
    bool upgrade = false;
    bool secret = false;  // the answer may echo a secret
  };
  struct Destination {
    std::string key;  // of connections that can be used again
    std::string name;
    uint16_t port = 0;
    bool tls = false;
    std::string target;
  };

  // False where the connection has ended.
  Task<Result<bool>> one_request();
  Task<Result<bool>> read_head(http::Socket& from, http::InputBuffer& in, std::string& head,
                               std::chrono::milliseconds patience, bool request);
  Task<Result<bool>> judge(Exchange& exchange);
  Task<Result<void>> answer(int status, std::string rule, std::string message, bool keep = false);
  Task<Result<void>> answer_canned(const Exchange& exchange, bool keep);
  Task<Result<bool>> forward(Exchange& exchange);
  Destination destination_of(const Exchange& exchange) const;
  std::string request_head(const Exchange& exchange, const Destination& to) const;
  Task<Result<std::unique_ptr<Upstream>>> connect(const Destination& to);
  Task<Result<bool>> exchange_with(Exchange& exchange, Upstream& upstream, const Destination& to,
                                   bool may_repeat, bool& retry);
  Task<Result<bool>> pass_response(Exchange& exchange, Upstream& upstream, http::InputBuffer& in);
  Task<Result<void>> pass_body(http::Socket& from, http::InputBuffer& in, http::Socket& to,
                               const http::Framing& framing, bool chunked_out, Redactor* redactor,
                               bool outward);
  Task<Result<void>> tunnel(Upstream& upstream, http::InputBuffer& in);
  Task<Result<void>> drain(const http::Framing& framing);
  std::string shown(const Exchange& exchange) const;

  Connection& connection_;
  http::Socket& client_;
  std::string tls_name_;
  http::InputBuffer in_;
};

}  // namespace atl::egress
