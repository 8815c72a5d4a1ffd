#include "egress/http_relay.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "egress/name.h"
#include "http/head_writer.h"

namespace atl::egress {

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr http::HeadLimits kHeadLimits{.head_bytes = 64 * 1024, .target_bytes = 32 * 1024};
constexpr size_t kReadSize = 32 * 1024;
constexpr auto kKeepAlive = 5min;
constexpr auto kHeadPatience = 30s;
constexpr auto kBodyPatience = 10min;

HttpStart looks_like_http(std::string_view bytes) {
  static constexpr std::string_view kMethods[] = {
      "GET ",    "HEAD ",    "POST ",      "PUT ",    "DELETE ", "OPTIONS ", "PATCH ",
      "TRACE ",  "CONNECT ", "PROPFIND ",  "MKCOL ",  "COPY ",   "MOVE ",    "LOCK ",
      "UNLOCK ", "REPORT ",  "PROPPATCH ", "SEARCH ", "PURGE "};
  for (std::string_view method : kMethods) {
    std::string_view common = method.substr(0, bytes.size());
    if (bytes.starts_with(common)) {
      return common.size() == method.size() ? HttpStart::Yes : HttpStart::Unclear;
    }
  }
  return HttpStart::No;
}

namespace {

// Whether it may be sent again where nobody knows what became of it (RFC 9110 9.2.2).
bool is_idempotent(std::string_view method) {
  static constexpr std::string_view kMethods[] = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};
  return std::find(std::begin(kMethods), std::end(kMethods), method) != std::end(kMethods);
}

// "host" or "host:port"; anything else is an attempt to mean two hosts at once.
std::optional<std::string> host_of(std::string_view authority) {
  size_t colon = authority.find(':');
  if (colon != authority.npos) {
    std::string_view port = authority.substr(colon + 1);
    bool digits =
        !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos;
    if (!digits) return std::nullopt;
  }
  return canonical_name(authority.substr(0, colon));
}

// Whether servers may take the path for another one: "/a/../b", "/./b", "//b", "/..;x/b".
bool is_ambiguous(std::string_view path) {
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    size_t end = std::min(path.find_first_of("/\\"), path.size());
    if (end < path.size() && path[end] == '\\') return true;
    std::string_view one = path.substr(0, end);
    path.remove_prefix(end);
    if (one.empty() && !path.empty()) return true;
    one = one.substr(0, one.find(';'));
    if (one == "." || one == "..") return true;
  }
  return false;
}

// "http://host/path" becomes "/path", where the host is the one that Host names.
bool make_origin_form(std::string& target, std::string_view host_field) {
  if (target.starts_with('/') || target == "*") return true;
  for (std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    std::string_view rest = std::string_view(target).substr(scheme.size());
    size_t slash = std::min(rest.find('/'), rest.size());
    if (!http::equals_ignoring_case(rest.substr(0, slash), host_field)) return false;
    std::string path(rest.substr(slash));
    target = path.empty() ? "/" : path;
    return true;
  }
  return false;
}

}  // namespace

Task<Result<void>> HttpRelay::run() {
  for (;;) {
    ATOLL_CO_ASSIGN(bool more, co_await one_request());
    if (!more || connection_.aborted()) break;
    in_.release_if_empty();
  }
  client_.shut_down_writing();
  co_return Result<void>();
}

// True with a whole head in `head`; false where the peer has ended between messages.
Task<Result<bool>> HttpRelay::read_head(http::Socket& from, http::InputBuffer& in,
                                        std::string& head, std::chrono::milliseconds patience,
                                        bool request) {
  http::HeadScanner scanner;
  for (;;) {
    auto found = scanner.scan(in.view(), kHeadLimits);
    if (!found) {
      if (request) ATOLL_CO_TRY(co_await answer(found.error().status, "", found.error().message));
      co_return fail(ErrorCode::InvalidArgument, found.error().message);
    }
    if (*found) {
      head.assign(in.view().substr(0, **found));
      in.consume(**found);
      co_return true;
    }
    auto got = co_await from.read(in.prepare(8 * 1024), patience);
    if (!got) co_return fail(std::move(got).error());
    if (*got == 0) {
      if (in.empty()) co_return false;
      co_return fail(ErrorCode::Unavailable, "the connection ended within a message");
    }
    in.commit(*got);
    if (request) patience = kHeadPatience;
  }
}

std::string HttpRelay::shown(const Exchange& exchange) const {
  const http::Request& request = exchange.head.request;
  return request.method + " " + exchange.head.encoded_path.substr(0, 512);
}

Task<Result<bool>> HttpRelay::one_request() {
  std::string text;
  bool first = in_.empty();
  ATOLL_CO_ASSIGN(bool whole,
                  co_await read_head(client_, in_, text, first ? kKeepAlive : kHeadPatience, true));
  if (!whole) co_return false;
  Exchange exchange;
  auto parsed = http::parse_request_head(text, kHeadLimits);
  if (!parsed) {
    ATOLL_CO_TRY(co_await answer(parsed.error().status, "", parsed.error().message));
    co_return false;
  }
  exchange.head = std::move(*parsed);
  connection_.sent(text.size());
  ATOLL_CO_ASSIGN(bool allowed, co_await judge(exchange));
  if (!allowed) co_return false;
  co_await connection_.outlet().requests().pass(1);
  if (connection_.limits().requests_per_second != 0) {
    co_await connection_.outlet().requests_of(connection_.domain(), connection_.limits()).pass(1);
  }
  if (exchange.head.expects_continue) {
    ATOLL_CO_TRY(co_await client_.write({"HTTP/1.1 100 Continue\r\n\r\n"}, kHeadPatience));
  }
  bool keep = exchange.head.keep_alive;
  if (exchange.plan.response != nullptr) {
    ATOLL_CO_TRY(co_await drain(exchange.head.framing));
    ATOLL_CO_TRY(co_await answer_canned(exchange, keep));
    co_return keep;
  }
  ATOLL_CO_ASSIGN(bool again, co_await forward(exchange));
  co_return again&& keep;
}

// Whether this request may go on; where not, it has been answered.
Task<Result<bool>> HttpRelay::judge(Exchange& exchange) {
  http::Request& request = exchange.head.request;
  auto host_field = request.headers.get("Host").value_or("");
  auto refuse = [&](int status, std::string message) -> Task<Result<bool>> {
    Verdict verdict{false, "", message, -1};
    connection_.outlet().refused(connection_.basis(), verdict, shown(exchange));
    connection_.note_refusal();
    ATOLL_CO_TRY(co_await answer(status, "", std::move(message)));
    co_return false;
  };
  auto host = host_of(host_field);
  bool literal = !host && IpAddress::parse(host_field.substr(0, host_field.find(':')));
  if (!host && literal) {
    co_return co_await refuse(403, "no rule allows " + std::string(host_field));
  }
  if (!host) co_return co_await refuse(400, "the Host field names no host");
  if (request.method == "CONNECT") co_return co_await refuse(400, "there is no proxy here");
  if (request.method == "TRACE") co_return co_await refuse(405, "TRACE is not passed on");
  if (!make_origin_form(request.target, host_field)) {
    co_return co_await refuse(400, "the request's target and its Host field differ");
  }
  bool encrypted = !tls_name_.empty();
  if (encrypted && *host != tls_name_) {
    co_return co_await refuse(421, "the connection was opened for " + tls_name_);
  }
  exchange.host = *host;
  exchange.port = connection_.basis().port;
  exchange.policy = connection_.outlet().policy();
  Protocol protocol = encrypted ? Protocol::Tls : Protocol::Http;
  Verdict verdict = exchange.policy->judge(*host, exchange.port, protocol);
  if (!verdict.allowed) {
    Basis basis = connection_.basis();
    basis.name = *host;
    connection_.outlet().refused(basis, verdict, shown(exchange));
    connection_.note_refusal();
    ATOLL_CO_TRY(co_await answer(403, verdict.rule, verdict.reason));
    co_return false;
  }
  if (!connection_.begin_request(*host, verdict)) co_return false;
  exchange.permit = verdict.permit;
  exchange.head_request = request.method == "HEAD";
  exchange.upgrade =
      request.headers.has_token("Connection", "upgrade") && request.headers.contains("Upgrade");
  // What a rule says of a path has to hold for what the server makes of it.
  if (exchange.policy->looks_at_paths(verdict.permit) && is_ambiguous(request.path)) {
    co_return co_await refuse(400, "the path can be read in several ways, and the rules for " +
                                       verdict.rule + " look at it: send it without dot segments");
  }
  RequestView view{.method = request.method,
                   .path = request.path,
                   .query = request.query,
                   .headers = request.headers};
  exchange.plan = exchange.policy->plan(verdict.permit, view, encrypted);
  if (!exchange.plan.missing_secret.empty()) {
    co_return co_await refuse(403, "the rule for " + verdict.rule + " wants the secret " +
                                       exchange.plan.missing_secret + ", which there is not");
  }
  exchange.secret = encrypted && !exchange.policy->values().empty() &&
                    exchange.policy->intercepts(verdict.permit);
  co_return true;
}

Task<Result<void>> HttpRelay::answer(int status, std::string rule, std::string message, bool keep) {
  json::object error{{"code", status == 403 ? "NETWORK_DENIED" : "NETWORK_ERROR"},
                     {"message", message},
                     {"rule", nullptr}};
  if (!rule.empty()) error["rule"] = rule;
  http::Response response = http::Response::json(
      json::serialize(json::object{{"error", std::move(error)}}) + "\n", status);
  response.headers.set("Atoll-Egress", status == 403 ? "denied" : "error");
  http::ResponseHeadOptions options{.status = status,
                                    .body = http::BodyKind::Length,
                                    .length = response.body.size(),
                                    .connection = keep ? "keep-alive" : "close"};
  ATOLL_CO_ASSIGN(std::string head, http::format_response_head(options, response.headers));
  co_return co_await client_.write({head, response.body}, kHeadPatience);
}

Task<Result<void>> HttpRelay::answer_canned(const Exchange& exchange, bool keep) {
  const CannedResponse& canned = *exchange.plan.response;
  std::string_view body = exchange.head_request ? std::string_view() : canned.body;
  http::Headers headers;
  for (const auto& [name, value] : canned.headers) headers.add(name, value);
  http::ResponseHeadOptions options{.status = canned.status,
                                    .body = http::BodyKind::Length,
                                    .length = canned.body.size(),
                                    .connection = keep ? "keep-alive" : "close"};
  ATOLL_CO_ASSIGN(std::string head, http::format_response_head(options, headers));
  connection_.received(head.size() + body.size());
  co_return co_await client_.write({head, body}, kHeadPatience);
}

Task<Result<void>> HttpRelay::drain(const http::Framing& framing) {
  uint64_t left = framing.length.value_or(0);
  if (framing.chunked) co_return fail(ErrorCode::NotSupported, "a body that nobody reads");
  while (left > 0) {
    if (in_.empty()) {
      ATOLL_CO_ASSIGN(size_t got, co_await client_.read(in_.prepare(kReadSize), kBodyPatience));
      if (got == 0) co_return fail(ErrorCode::Unavailable, "the client hung up");
      in_.commit(got);
    }
    size_t part = static_cast<size_t>(std::min<uint64_t>(left, in_.size()));
    in_.consume(part);
    left -= part;
  }
  co_return Result<void>();
}

Task<Result<std::unique_ptr<Upstream>>> HttpRelay::connect(const Destination& to) {
  Outlet& outlet = connection_.outlet();
  ATOLL_CO_ASSIGN(auto reached,
                  co_await outlet.reach(to.name, to.port, connection_.basis().address));
  std::unique_ptr<http::TlsSession> session;
  if (to.tls) {
    ATOLL_CO_ASSIGN(session, outlet.around().upstream_trust->connect(reached.fd.get(), to.name));
  }
  auto upstream = std::make_unique<Upstream>(
      Upstream{http::Socket(outlet.around().executor, std::move(reached.fd),
                            outlet.around().deadlines, std::move(session)),
               reached.address});
  connection_.set_upstream(&upstream->socket);
  if (to.tls) {
    auto done = co_await upstream->socket.handshake(std::chrono::steady_clock::now() + 10s);
    connection_.set_upstream(nullptr);
    if (!done) co_return fail(std::move(done).error());
  }
  co_return std::move(upstream);
}

Task<Result<bool>> HttpRelay::forward(Exchange& exchange) {
  Destination to = destination_of(exchange);
  for (bool fresh : {false, true}) {
    auto idle = fresh ? nullptr : connection_.outlet().take_idle(to.key);
    bool may_repeat = idle != nullptr && is_idempotent(exchange.head.request.method);
    Result<std::unique_ptr<Upstream>> upstream = std::move(idle);
    if (*upstream == nullptr) upstream = co_await connect(to);
    if (connection_.aborted()) co_return fail(ErrorCode::Cancelled, "the policy has changed");
    if (!upstream) {
      bool denied = upstream.error().code() == ErrorCode::PermissionDenied;
      std::string why = upstream.error().message();
      if (denied) {
        connection_.outlet().refused(connection_.basis(), {false, connection_.domain(), why, -1},
                                     shown(exchange));
        connection_.note_refusal();
      }
      ATOLL_CO_TRY(co_await answer(denied ? 403 : 502, connection_.domain(),
                                   exchange.host + " cannot be reached: " + why));
      if (denied) co_return false;
      co_return fail(std::move(upstream).error());
    }
    bool retry = false;
    connection_.set_upstream(&(*upstream)->socket);
    connection_.note_address((*upstream)->address);
    auto done = co_await exchange_with(exchange, **upstream, to, may_repeat, retry);
    connection_.set_upstream(nullptr);
    if (retry && !connection_.aborted()) continue;
    if (!done) co_return fail(std::move(done).error());
    if (*done) connection_.outlet().give_idle(to.key, std::move(*upstream));
    // Whatever the server's connection is good for, the client's is whole.
    co_return !connection_.aborted() && !exchange.upgrade && exchange.head.keep_alive;
  }
  co_return fail(ErrorCode::Unavailable, "the server hung up");
}

}  // namespace atl::egress
