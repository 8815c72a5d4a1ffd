#include "http/connection.h"

#include <array>
#include <exception>
#include <utility>

#include "base/log.h"
#include "base/scope_exit.h"
#include "http/head_writer.h"
#include "http/status.h"

namespace atl::http {
namespace {

constexpr size_t kReadBytes = 4096;
constexpr size_t kLingerBytes = 1024 * 1024;
constexpr std::chrono::milliseconds kLingerTime{1'000};

std::string_view code_of(int status) {
  switch (status) {
    case 408:
      return "TIMEOUT";
    case 413:
      return "PAYLOAD_TOO_LARGE";
    case 414:
      return "URI_TOO_LONG";
    case 417:
      return "EXPECTATION_FAILED";
    case 431:
      return "HEADERS_TOO_LARGE";
    case 501:
      return "NOT_SUPPORTED";
    case 505:
      return "VERSION_NOT_SUPPORTED";
    default:
      return "VALIDATION_ERROR";
  }
}

std::string describe(std::exception_ptr error) {
  try {
    std::rethrow_exception(std::move(error));
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "unknown exception";
  }
}

}  // namespace

Connection::Connection(Socket socket, Peer peer, const ConnectionContext& context)
    : socket_(std::move(socket)),
      router_(context.router),
      options_(context.options),
      memory_(context.memory),
      peer_(std::move(peer)),
      limits_{options_.max_head_bytes, options_.max_target_bytes} {}

Task<bool> Connection::handshake() {
  if (finishing_) co_return false;
  auto done = co_await socket_.handshake(Socket::Clock::now() + options_.handshake_timeout);
  if (done) co_return true;
  if (socket_.falls_back_to_plain()) {
    co_await refuse(ProtocolError{400, "this port speaks HTTPS: use https:// in the address"});
  }
  co_return false;
}

Task<void> Connection::run() {
  while (co_await serve_one()) {
  }
}

Connection::Exchange::Exchange(RequestHead parsed, Connection& connection)
    : head(std::move(parsed)),
      body(connection.socket_, connection.input_, head, connection.options_.body_timeout,
           Pace(connection.options_.pace_window, connection.options_.pace_bytes)),
      writer(WriterContext{connection.socket_, connection.input_, body, head.request,
                           connection.options_},
             head.keep_alive && !connection.finishing_) {
  if (connection.options_.observer) started = Socket::Clock::now();
  head.request.memory = MemoryShare(connection.memory_);
  head.request.peer = connection.peer_;
  head.request.body = &body;
}

Task<bool> Connection::serve_one() {
  Parsed<bool> head = co_await read_head();
  if (!head) {
    co_await refuse(std::move(head).error());
    co_return false;
  }
  if (!*head) co_return false;
  first_ = false;
  waiting_since_.reset();
  ScopeExit forget([this] { exchange_.reset(); });
  co_await answer();
  if (options_.observer) report();
  exchange_->writer.stop_watching();
  if (may_go_on() && exchange_->body.complete()) co_return true;
  co_return co_await settle();
}

// False: the client ended the connection, or stayed away too long, between requests.
Task<Parsed<bool>> Connection::read_head() {
  HeadScanner scanner;
  Socket::Clock::time_point started{};
  waiting_since_ = Socket::Clock::now();
  while (true) {
    auto taken = take_head(scanner);
    if (!taken || *taken) co_return taken;
    if (finishing_) co_return false;
    bool idle = input_.empty();
    auto now = Socket::Clock::now();
    if (!idle && started == Socket::Clock::time_point()) started = now;
    auto deadline = idle ? now + (first_ ? options_.head_timeout : options_.idle_timeout)
                         : started + options_.head_timeout;
    std::span<char> room = input_.prepare(kReadBytes);
    auto got = co_await socket_.read_later(room, deadline);
    if (!got && socket_.timed_out() && !idle) {
      co_return tl::unexpected(ProtocolError{408, "the request head took too long"});
    }
    if (!got || *got == 0) co_return false;
    input_.commit(*got);
  }
}

// Begins an exchange when a whole head is there.
Parsed<bool> Connection::take_head(HeadScanner& scanner) {
  // Some clients end a body with a line end too many (RFC 9112 2.2).
  if (input_.view().starts_with("\r\n")) input_.consume(2);
  if (input_.empty() || input_.view() == "\r") return false;
  auto length = scanner.scan(input_.view(), limits_);
  if (!length) return tl::unexpected(std::move(length).error());
  if (!*length) return false;
  auto head = parse_request_head(input_.view().substr(0, **length), limits_);
  if (!head) return tl::unexpected(std::move(head).error());
  input_.consume(**length);
  exchange_.emplace(std::move(*head), *this);
  return true;
}

Response Connection::refusal(const Result<Router::Match>& match) const {
  if (!match) return error_response(match.error());
  const Request& request = exchange_->head.request;
  if (match->kind == Router::Match::Kind::NotFound) {
    return error_response(404, "NOT_FOUND", "no such route: " + request.path);
  }
  Response response =
      error_response(405, "METHOD_NOT_ALLOWED", request.method + " is not allowed here");
  response.headers.add("Allow", match->allow);
  return response;
}

// The root of every handler: what it throws ends here.
Task<void> Connection::answer() {
  Request& request = exchange_->head.request;
  ConnectionWriter& writer = exchange_->writer;
  auto match = router_.serving(request).find(request.method, exchange_->head.encoded_path);
  if (!match || match->kind != Router::Match::Kind::Found) {
    co_await writer.send(refusal(match));
    co_return;
  }
  request.params = std::move(match->params);
  exchange_->pattern = match->pattern;
  std::exception_ptr thrown;
  try {
    co_await (*match->handler)(request, writer);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown && !aborted_) {
    log(LogLevel::Error, "handler failed",
        {{"method", request.method}, {"path", request.path}, {"error", describe(thrown)}});
  }
  if (!writer.started()) {
    co_await writer.send(error_response(500, "SERVER_ERROR", "internal error"));
  }
}

bool Connection::may_go_on() const {
  return exchange_->writer.finished() && exchange_->writer.keep_alive() && !finishing_;
}

void Connection::report() const {
  const ConnectionWriter& writer = exchange_->writer;
  FinishedRequest finished;
  finished.method = exchange_->head.request.method;
  finished.pattern = exchange_->pattern;
  finished.status = writer.status();
  finished.complete = writer.finished() || writer.websocket() || writer.switched();
  finished.duration = Socket::Clock::now() - exchange_->started;
  finished.body_bytes = writer.body_bytes();
  options_.observer->request_finished(finished);
}

// May the connection serve another request?
Task<bool> Connection::settle() {
  if (exchange_->writer.websocket()) co_return false;
  if (!exchange_->writer.finished()) {
    socket_.abort();
    co_return false;
  }
  if (may_go_on() &&
      co_await exchange_->body.drain(options_.max_drain_bytes, options_.drain_timeout)) {
    co_return true;
  }
  co_await close_gently();
  co_return false;
}

Task<void> Connection::refuse(ProtocolError error) {
  Response response = error_response(error.status, code_of(error.status), error.message);
  size_t body_bytes = response.body.size();
  auto text = format_last_response(response);
  if (!text) co_return;
  WriteParts parts{*text};
  // At most one attempt: a client this broken is not waited for.
  auto sent = socket_.try_write(parts);
  if (options_.observer) {
    FinishedRequest finished;
    finished.status = error.status;
    finished.complete = sent && *sent;
    finished.body_bytes = body_bytes;
    options_.observer->request_finished(finished);
  }
  if (!sent) co_return;
  co_await close_gently();
}

// Closing with unread input makes TCP reset the connection, and the reset may overtake the answer.
Task<void> Connection::close_gently() {
  if (socket_.timed_out()) co_return;
  socket_.shut_down_writing();
  std::array<char, kReadBytes> sink;
  auto deadline = Socket::Clock::now() + kLingerTime;
  for (size_t total = 0; total < kLingerBytes && !finishing_;) {
    auto got = co_await socket_.read_later(sink, deadline);
    if (!got || *got == 0) break;
    total += *got;
  }
}

void Connection::finish_soon() {
  finishing_ = true;
  if (!exchange_) socket_.cancel();
}

void Connection::abort() {
  finishing_ = true;
  aborted_ = true;
  socket_.abort();
  if (exchange_) exchange_->writer.abandon();
  cancellation_.emit(boost::asio::cancellation_type::terminal);
}

}  // namespace atl::http
