#include "http/connection_writer.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/chunked.h"
#include "http/origin.h"
#include "http/status.h"
#include "http/websocket_accept.h"

namespace atl::http {

namespace asio = boost::asio;

namespace {

constexpr size_t kCopiedBody = 4096;

bool has_no_body(int status) { return status < 200 || status == 204 || status == 304; }

tl::unexpected<Error> misuse(std::string_view what) {
  return fail(ErrorCode::Internal, std::string(what));
}

// A timer that is cancelled when the peer is gone.
std::shared_ptr<asio::steady_timer> closing_event(PeerWatch& watch,
                                                  const asio::any_io_executor& executor) {
  auto event =
      std::make_shared<asio::steady_timer>(executor, asio::steady_timer::time_point::max());
  watch.subscribe([event] { event->cancel(); });
  return event;
}

}  // namespace

ConnectionWriter::ConnectionWriter(WriterContext context, bool keep_alive)
    : context_(context), keep_alive_(keep_alive), writing_(context.socket.executor()) {}

ConnectionWriter::~ConnectionWriter() { stop_watching(); }

void ConnectionWriter::stop_watching() {
  if (watch_) watch_->stop();
}

Result<std::string> ConnectionWriter::make_head(int status, const Headers& headers, BodyKind body,
                                                uint64_t length) {
  if (body == BodyKind::UntilClose || headers.has_token("Connection", "close")) keep_alive_ = false;
  // Said now rather than shown later: a client that knows will not send its next request here.
  if (!context_.body.can_drain(context_.options.max_drain_bytes)) keep_alive_ = false;
  ResponseHeadOptions options;
  options.status = status;
  options.body = body;
  options.length = length;
  if (!keep_alive_) {
    options.connection = "close";
  } else if (context_.request.minor_version == 0) {
    options.connection = "keep-alive";
  }
  return format_response_head(options, headers);
}

// Every path to the socket: a failure anywhere ends the response for good.
Task<Result<void>> ConnectionWriter::push(WriteParts parts) {
  auto result = co_await context_.socket.write(parts, context_.options.write_timeout);
  if (!result) {
    phase_ = Phase::Failed;
    // A deadline cancels the watch's own wait as well, so it would never notice.
    if (watch_) watch_->fire();
  }
  co_return result;
}

Task<Result<void>> ConnectionWriter::send(Response response) {
  if (phase_ != Phase::Fresh) co_return misuse("the request is already answered");
  BodyKind body = has_no_body(response.status) ? BodyKind::None : BodyKind::Length;
  ATOLL_CO_ASSIGN(std::string head,
                  make_head(response.status, response.headers, body, response.body.size()));
  phase_ = Phase::Done;
  status_ = response.status;
  WriteParts parts;
  if (body == BodyKind::Length && !head_only()) {
    body_bytes_ = response.body.size();
    // One part is cheaper to send than two, as long as it is cheap to copy.
    if (response.body.size() <= kCopiedBody) {
      head.append(response.body);
    } else {
      parts[1] = response.body;
    }
  }
  parts[0] = head;
  // Small answers: the same single write without another coroutine.
  auto done = context_.socket.try_write(parts);
  if (done && *done) co_return Result<void>();
  co_return co_await push(parts);
}

Task<Result<void>> ConnectionWriter::start(int status, Headers headers,
                                           std::optional<uint64_t> content_length) {
  if (phase_ != Phase::Fresh) co_return misuse("the request is already answered");
  body_kind_ = BodyKind::Chunked;
  if (context_.request.minor_version == 0) body_kind_ = BodyKind::UntilClose;
  if (content_length) body_kind_ = BodyKind::Length;
  if (has_no_body(status)) body_kind_ = BodyKind::None;
  length_left_ = body_kind_ == BodyKind::Length ? *content_length : 0;
  ATOLL_CO_ASSIGN(std::string head, make_head(status, headers, body_kind_, length_left_));
  phase_ = Phase::Streaming;
  status_ = status;
  release_input();
  WriteParts parts{head};
  co_return co_await push(parts);
}

Result<void> ConnectionWriter::count_bytes(uint64_t bytes) {
  if (phase_ == Phase::Failed) return fail(ErrorCode::Unavailable, "the client is gone");
  if (phase_ != Phase::Streaming) return misuse("the response is not being streamed");
  if (body_kind_ == BodyKind::None && bytes > 0) return misuse("this status has no body");
  if (body_kind_ == BodyKind::Length) {
    if (bytes > length_left_) return misuse("the body is longer than announced");
    length_left_ -= bytes;
  }
  if (!head_only()) body_bytes_ += bytes;
  return {};
}

Task<Result<void>> ConnectionWriter::write(std::string_view bytes) {
  if (bytes.empty()) co_return Result<void>();  // an empty chunk would end the body
  auto guard = writing_.is_locked() ? co_await writing_.lock() : writing_.lock_free();
  ATOLL_CO_TRY(count_bytes(bytes.size()));
  if (head_only()) co_return Result<void>();
  if (body_kind_ != BodyKind::Chunked) {
    WriteParts parts{bytes};
    co_return co_await push(parts);
  }
  ChunkHeader header(bytes.size());
  WriteParts parts{header.text(), bytes, kChunkEnd};
  co_return co_await push(parts);
}

Task<Result<void>> ConnectionWriter::finish() {
  auto guard = writing_.is_locked() ? co_await writing_.lock() : writing_.lock_free();
  ATOLL_CO_TRY(count_bytes(0));
  if (length_left_ > 0 && !head_only()) co_return misuse("the body is shorter than announced");
  if (body_kind_ == BodyKind::Chunked && !head_only()) {
    WriteParts parts{kLastChunk};
    ATOLL_CO_TRY(co_await push(parts));
  }
  phase_ = Phase::Done;
  co_return Result<void>();
}

void ConnectionWriter::release_input() {
  // A body that is read beside the answer is read into it.
  if (context_.body.complete()) context_.input.release_if_empty();
}

PeerWatch& ConnectionWriter::watch() {
  if (watch_) return *watch_;
  release_input();
  watch_ = std::make_shared<PeerWatch>(context_.socket, context_.input);
  if (context_.body.complete()) {
    watch_->start();
  } else {
    context_.body.on_complete([watch = watch_] { watch->start(); });
  }
  return *watch_;
}

Task<void> ConnectionWriter::closed() {
  auto event = closing_event(watch(), context_.socket.executor());
  if (watch_->gone()) co_return;
  co_await event->async_wait(asio::as_tuple(asio::use_awaitable));
}

void ConnectionWriter::on_closed(std::function<void()> callback) {
  watch().subscribe(std::move(callback));
}

void ConnectionWriter::abandon() {
  if (watch_) watch_->fire();
  if (websocket_) websocket_->abort();
}

Task<Result<std::shared_ptr<WebSocket>>> ConnectionWriter::upgrade_websocket(
    WebSocketOptions options) {
  if (phase_ != Phase::Fresh) co_return misuse("the request is already answered");
  if (!is_websocket_upgrade(context_.request)) {
    Response refusal = error_response(426, "UPGRADE_REQUIRED", "a WebSocket handshake is expected");
    refusal.headers.add("Upgrade", "websocket");
    ATOLL_CO_TRY(co_await send(std::move(refusal)));
    co_return fail(ErrorCode::InvalidArgument, "not a WebSocket handshake");
  }
  if (!is_origin_allowed(context_.request, options.allowed_origins)) {
    ATOLL_CO_TRY(co_await send(error_response(
        403, "FORBIDDEN", "pages of this origin may not open WebSockets here (allowed_origin)")));
    co_return fail(ErrorCode::PermissionDenied, "a page of another origin");
  }
  // Nothing may follow the handshake before its answer (RFC 6455 4.1).
  if (!context_.body.complete() || !context_.input.empty()) {
    ATOLL_CO_TRY(co_await send(error_response(400, "VALIDATION_ERROR", "early WebSocket data")));
    co_return fail(ErrorCode::InvalidArgument, "early WebSocket data");
  }
  stop_watching();
  phase_ = Phase::Upgraded;
  keep_alive_ = false;
  auto executor = context_.socket.executor();
  ATOLL_CO_ASSIGN(websocket_,
                  co_await accept_websocket(std::move(executor), context_.socket.release(),
                                            &context_.request, std::move(options)));
  status_ = 101;
  co_return websocket_;
}

Task<Result<SwitchedConnection>> ConnectionWriter::switch_protocols(Headers headers) {
  if (phase_ != Phase::Fresh) co_return misuse("the request is already answered");
  if (!context_.body.complete()) co_return misuse("the request's body is not read");
  std::string head = "HTTP/1.1 101 Switching Protocols\r\n";
  for (const Field& field : headers) {
    if (!is_token(field.name) || !is_field_value(field.value)) {
      co_return misuse("header field '" + field.name + "' cannot be sent");
    }
    head.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  head.append("\r\n");
  stop_watching();
  phase_ = Phase::Upgraded;
  keep_alive_ = false;
  status_ = 101;
  WriteParts parts{head};
  ATOLL_CO_TRY(co_await push(parts));
  SwitchedConnection switched{.socket = &context_.socket, .early = {}};
  switched.early.assign(context_.input.view());
  context_.input.consume(context_.input.size());
  release_input();
  co_return switched;
}

Task<Result<void>> ResponseWriter::send_json(std::string body, int status) {
  co_return co_await send(Response::json(std::move(body), status));
}

Task<Result<void>> ResponseWriter::send_error(Error error) {
  co_return co_await send(error_response(error));
}

}  // namespace atl::http
