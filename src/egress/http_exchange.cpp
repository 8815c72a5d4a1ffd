// One request to a server and its answer back.
#include <algorithm>

#include "egress/http_relay.h"
#include "http/forwarding.h"
#include "http/target.h"

namespace atl::egress {

using namespace std::chrono_literals;

constexpr size_t kReadSize = 32 * 1024;
constexpr auto kAnswerPatience = 10min;
constexpr auto kWritePatience = 10min;

namespace {

void field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

// The target with a parameter set, whatever it was before.
std::string with_parameter(const std::string& target, const std::string& name,
                           const std::string& value) {
  size_t mark = target.find('?');
  std::string path = target.substr(0, mark), kept;
  std::string_view query = mark == target.npos ? "" : std::string_view(target).substr(mark + 1);
  std::string encoded = http::percent_encode(name);
  while (!query.empty()) {
    size_t end = std::min(query.find('&'), query.size());
    std::string_view one = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    auto key = http::percent_decode(one.substr(0, one.find('=')));
    if (key && *key == name) continue;
    kept.append(kept.empty() ? "" : "&").append(one);
  }
  kept.append(kept.empty() ? "" : "&").append(encoded + "=" + http::percent_encode(value));
  return path + "?" + kept;
}

}  // namespace

HttpRelay::Destination HttpRelay::destination_of(const Exchange& exchange) const {
  Destination to;
  to.name = exchange.host;
  to.port = exchange.port;
  to.tls = !tls_name_.empty();
  to.target = exchange.head.request.target;
  for (const auto& [name, value] : exchange.plan.query) {
    to.target = with_parameter(to.target, name, value);
  }
  if (exchange.plan.forward_url != nullptr) {
    std::string_view url(*exchange.plan.forward_url);
    url.remove_prefix(std::string_view("https://").size());
    size_t slash = std::min(url.find('/'), url.size());
    std::string_view authority = url.substr(0, slash);
    std::string path(url.substr(slash));
    size_t colon = authority.find(':');
    to.name = authority.substr(0, colon);
    to.port = colon == authority.npos
                  ? 443
                  : static_cast<uint16_t>(std::stoi(std::string(authority.substr(colon + 1))));
    size_t mark = to.target.find('?');
    to.target =
        (path.empty() ? "/" : path) + (mark == to.target.npos ? "" : to.target.substr(mark));
    to.tls = true;
  }
  to.key = (to.tls ? "s" : "p") + std::to_string(to.port) + to.name;
  return to;
}

std::string HttpRelay::request_head(const Exchange& exchange, const Destination& to) const {
  const http::Request& request = exchange.head.request;
  const RequestPlan& plan = exchange.plan;
  std::string out;
  out.reserve(1024);
  out.append(request.method).append(" ").append(to.target).append(" HTTP/1.1\r\n");
  bool forwarded = plan.forward_url != nullptr;
  std::string host(request.headers.get("Host").value_or(""));
  field(out, "Host",
        forwarded ? to.name + (to.port == 443 ? "" : ":" + std::to_string(to.port)) : host);
  auto changed = [&](std::string_view name) {
    return std::any_of(plan.headers.begin(), plan.headers.end(), [&](const auto& change) {
      return http::equals_ignoring_case(change.first, name);
    });
  };
  for (const http::Field& one : request.headers) {
    if (http::equals_ignoring_case(one.name, "Host") ||
        http::is_hop_by_hop(one.name, request.headers))
      continue;
    if (changed(one.name)) continue;
    // An encoded body could carry a value past the eye that looks for it.
    if (exchange.secret && http::equals_ignoring_case(one.name, "Accept-Encoding")) continue;
    field(out, one.name, one.value);
  }
  if (exchange.secret) field(out, "Accept-Encoding", "identity");
  for (const auto& [name, value] : plan.headers) {
    if (value) field(out, name, *value);
  }
  if (forwarded) {
    field(out, "vercel-forwarded-host", exchange.host);
    field(out, "vercel-forwarded-scheme", tls_name_.empty() ? "http" : "https");
    field(out, "vercel-forwarded-port", std::to_string(exchange.port));
    field(out, "vercel-forwarded-path", exchange.head.encoded_path);
  }
  const http::Framing& framing = exchange.head.framing;
  if (framing.chunked) {
    field(out, "Transfer-Encoding", "chunked");
  } else if (request.headers.contains("Content-Length")) {
    field(out, "Content-Length", std::to_string(framing.length.value_or(0)));
  }
  if (exchange.upgrade) {
    field(out, "Connection", "Upgrade");
    field(out, "Upgrade", *request.headers.get("Upgrade"));
  }
  out.append("\r\n");
  return out;
}

// True where the server's connection can be used again. `retry`: it had ended meanwhile, which
// only a request that may be repeated is told.
Task<Result<bool>> HttpRelay::exchange_with(Exchange& exchange, Upstream& upstream,
                                            const Destination& to, bool may_repeat, bool& retry) {
  std::string head = request_head(exchange, to);
  const http::Framing& framing = exchange.head.framing;
  bool bodiless = !framing.chunked && framing.length.value_or(0) == 0;
  auto written = co_await upstream.socket.write({head}, kWritePatience);
  if (written && !bodiless) {
    written =
        co_await pass_body(client_, in_, upstream.socket, framing, framing.chunked, nullptr, true);
  }
  // A server may have answered and hung up before it had everything: its answer counts.
  // What is left of the request's body must not be taken for the next request.
  if (!written && !bodiless) exchange.head.keep_alive = false;
  if (!written && may_repeat && bodiless) {
    retry = true;
    co_return false;
  }
  http::InputBuffer in;
  if (may_repeat && bodiless) {
    ATOLL_CO_TRY(co_await upstream.socket.wait_readable(kAnswerPatience));
    auto got = upstream.socket.try_read(in.prepare(kReadSize));
    bool ended = !got || (*got && **got == 0);
    if (ended) {
      retry = true;
      co_return false;
    }
    if (*got) in.commit(**got);
  }
  auto passed = co_await pass_response(exchange, upstream, in);
  if (!passed) co_return fail(std::move(passed).error());
  co_return *passed&& in.empty() && written.has_value();
}

Task<Result<bool>> HttpRelay::pass_response(Exchange& exchange, Upstream& upstream,
                                            http::InputBuffer& in) {
  std::string text;
  http::ResponseHead response;
  auto refuse = [&](std::string why) -> Task<Result<bool>> {
    ATOLL_CO_TRY(co_await answer(502, connection_.domain(), exchange.host + ": " + why));
    co_return fail(ErrorCode::Unavailable, why);
  };
  do {
    auto whole = co_await read_head(upstream.socket, in, text, kAnswerPatience, false);
    if (!whole) co_return co_await refuse(whole.error().message());
    if (!*whole) co_return co_await refuse("the server hung up without an answer");
    auto parsed = http::parse_response_head(text);
    if (!parsed) co_return co_await refuse(parsed.error().message);
    response = std::move(*parsed);
  } while (response.status < 200 && response.status != 101);
  bool switching = response.status == 101;
  if (switching && !exchange.upgrade) co_return co_await refuse("an unasked change of protocol");
  exchange.upgrade = switching;

  bool no_body =
      exchange.head_request || response.status == 204 || response.status == 304 || switching;
  bool until_close = !no_body && !response.framing.chunked && !response.framing.length;
  bool old_client = exchange.head.request.minor_version == 0;
  bool chunked_out = !no_body && !old_client && (response.framing.chunked || until_close);
  bool close_after = !exchange.head.keep_alive || (old_client && !response.framing.length);
  if (close_after) exchange.head.keep_alive = false;
  std::string out = "HTTP/1.1 ";
  size_t line_end = text.find("\r\n");
  out.append(text, 9, line_end - 9).append("\r\n");
  Redactor redactor(exchange.policy->values());
  for (const http::Field& one : response.headers) {
    bool keeps = switching && (http::equals_ignoring_case(one.name, "Connection") ||
                               http::equals_ignoring_case(one.name, "Upgrade"));
    if (!keeps && http::is_hop_by_hop(one.name, response.headers)) continue;
    if (http::equals_ignoring_case(one.name, "Alt-Svc")) continue;  // no other way leads there
    std::string value = one.value;
    if (exchange.secret) redactor.mask(value);
    field(out, one.name, value);
  }
  if (chunked_out) {
    field(out, "Transfer-Encoding", "chunked");
  } else if (response.framing.length && !switching) {
    field(out, "Content-Length", std::to_string(*response.framing.length));
  }
  if (!switching) field(out, "Connection", close_after ? "close" : "keep-alive");
  out.append("\r\n");
  connection_.received(out.size());

  if (switching) {
    ATOLL_CO_TRY(co_await client_.write({out}, kWritePatience));
    ATOLL_CO_TRY(co_await tunnel(upstream, in));
    co_return false;
  }
  uint64_t length = response.framing.length.value_or(0);
  bool all_here = no_body || (response.framing.length && in.size() >= length);
  if (all_here) {
    // The usual small answer: one write.
    size_t size = no_body ? 0 : static_cast<size_t>(length);
    std::string body(in.view().substr(0, size));
    if (exchange.secret) redactor.mask(body);
    in.consume(size);
    connection_.received(size);
    ATOLL_CO_TRY(co_await client_.write({out, body}, kWritePatience));
    co_return response.keep_alive;
  }
  ATOLL_CO_TRY(co_await client_.write({out}, kWritePatience));
  ATOLL_CO_TRY(co_await pass_body(upstream.socket, in, client_, response.framing, chunked_out,
                                  exchange.secret ? &redactor : nullptr, false));
  co_return response.keep_alive && !until_close;
}

// By length, by chunks, or (neither) until the sender ends; goes out in chunks or as it is.
Task<Result<void>> HttpRelay::pass_body(http::Socket& from, http::InputBuffer& in, http::Socket& to,
                                        const http::Framing& framing, bool chunked_out,
                                        Redactor* redactor, bool outward) {
  http::ChunkedDecoder chunks;
  uint64_t left = framing.length.value_or(0);
  bool by_end = !framing.chunked && !framing.length;
  auto emit = [&](std::string_view data) -> Task<Result<void>> {
    if (data.empty()) co_return Result<void>();
    if (!chunked_out) co_return co_await to.write({data}, kWritePatience);
    http::ChunkHeader header(data.size());
    co_return co_await to.write({header.text(), data, http::kChunkEnd}, kWritePatience);
  };
  for (;;) {
    if (framing.chunked) {
      ATOLL_CO_ASSIGN(size_t used, chunks.feed(in.view()));
      in.consume(used);
      if (chunks.done()) break;
      left = chunks.data_left();
    }
    if (framing.length && left == 0) break;
    if (in.empty()) {
      auto got = co_await from.read(in.prepare(kReadSize), kAnswerPatience);
      if (!got) co_return fail(std::move(got).error());
      if (*got == 0 && by_end) break;
      if (*got == 0) co_return fail(ErrorCode::Unavailable, "the connection ended within a body");
      in.commit(*got);
      continue;
    }
    size_t part = by_end ? in.size() : static_cast<size_t>(std::min<uint64_t>(left, in.size()));
    std::string_view data = in.view().substr(0, part);
    outward ? connection_.sent(part) : connection_.received(part);
    if (redactor != nullptr) {
      std::string clean = redactor->feed(data);
      ATOLL_CO_TRY(co_await emit(clean));
    } else {
      ATOLL_CO_TRY(co_await emit(data));
    }
    in.consume(part);
    if (framing.chunked) chunks.consume_data(part);
    if (framing.length) left -= part;
    if (connection_.has_limit()) co_await connection_.throttled(part);
  }
  if (redactor != nullptr) {
    std::string rest = redactor->finish();
    ATOLL_CO_TRY(co_await emit(rest));
  }
  if (chunked_out) co_return co_await to.write({http::kLastChunk}, kWritePatience);
  co_return Result<void>();
}

// After an upgrade both sides speak as they like.
Task<Result<void>> HttpRelay::tunnel(Upstream& upstream, http::InputBuffer& in) {
  if (!in.empty()) ATOLL_CO_TRY(co_await client_.write({in.view()}, kWritePatience));
  if (!in_.empty()) ATOLL_CO_TRY(co_await upstream.socket.write({in_.view()}, kWritePatience));
  co_await connection_.pump_both(upstream.socket);
  co_return Result<void>();
}

}  // namespace atl::egress
