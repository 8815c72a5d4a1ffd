#include "http/connection.h"

#include <array>
#include <exception>
#include <utility>

#include "base/log.h"
#include "base/scope_exit.h"
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

Connection::Connection(boost::asio::any_io_executor executor, UniqueFd fd, Peer peer,
                       DeadlineQueue& deadlines, const Router& router, const ServerOptions& options)
    : socket_(std::move(executor), std::move(fd), deadlines),
      router_(router),
      options_(options),
      peer_(std::move(peer)),
      limits_{options.max_head_bytes, options.max_target_bytes} {}

Task<void> Connection::run() {
  while (co_await serve_one()) {
  }
}

Task<bool> Connection::serve_one() {
  Parsed<std::optional<RequestHead>> head = co_await read_head();
  if (!head) {
    co_await refuse(std::move(head).error());
    co_return false;
  }
  if (!*head) co_return false;
  first_ = false;
  Request& request = (*head)->request;
  RequestBody body(socket_, input_, **head, options_.body_timeout);
  ConnectionWriter writer(WriterContext{socket_, input_, body, request, options_},
                          (*head)->keep_alive && !finishing_);
  request.peer = peer_;
  request.body = &body;
  writer_ = &writer;
  ScopeExit forget([this] { writer_ = nullptr; });
  co_await answer(&**head, &writer);
  writer.stop_watching();
  co_return co_await settle(&body, &writer);
}

// None: the client ended the connection, or stayed away too long, between requests.
Task<Parsed<std::optional<RequestHead>>> Connection::read_head() {
  HeadScanner scanner;
  Socket::Clock::time_point started{};
  while (true) {
    auto head = take_head(scanner);
    if (!head || *head) co_return head;
    if (finishing_) co_return std::nullopt;
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
    if (!got || *got == 0) co_return std::nullopt;
    input_.commit(*got);
  }
}

Parsed<std::optional<RequestHead>> Connection::take_head(HeadScanner& scanner) {
  // Some clients end a body with a line end too many (RFC 9112 2.2).
  if (input_.view().starts_with("\r\n")) input_.consume(2);
  if (input_.empty() || input_.view() == "\r") return std::nullopt;
  auto length = scanner.scan(input_.view(), limits_);
  if (!length) return tl::unexpected(std::move(length).error());
  if (!*length) return std::nullopt;
  auto head = parse_request_head(input_.view().substr(0, **length), limits_);
  if (!head) return tl::unexpected(std::move(head).error());
  input_.consume(**length);
  return std::move(*head);
}

Task<void> Connection::answer(RequestHead* head, ConnectionWriter* writer) {
  Request& request = head->request;
  auto match = router_.find(request.method, head->encoded_path);
  if (!match) {
    co_await writer->send(error_response(match.error()));
  } else if (match->kind == Router::Match::Kind::NotFound) {
    co_await writer->send(error_response(404, "NOT_FOUND", "no such route: " + request.path));
  } else if (match->kind == Router::Match::Kind::MethodNotAllowed) {
    Response response =
        error_response(405, "METHOD_NOT_ALLOWED", request.method + " is not allowed here");
    response.headers.add("Allow", match->allow);
    co_await writer->send(std::move(response));
  } else {
    request.params = std::move(match->params);
    co_await call(match->handler, &request, writer);
  }
}

// The root of every handler: what it throws ends here.
Task<void> Connection::call(const Handler* handler, Request* request, ConnectionWriter* writer) {
  std::exception_ptr thrown;
  try {
    co_await (*handler)(*request, *writer);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown && !aborted_) {
    log(LogLevel::Error, "handler failed",
        {{"method", request->method}, {"path", request->path}, {"error", describe(thrown)}});
  }
  if (!writer->started()) {
    co_await writer->send(error_response(500, "SERVER_ERROR", "internal error"));
  }
}

// May the connection serve another request?
Task<bool> Connection::settle(RequestBody* body, ConnectionWriter* writer) {
  if (writer->websocket()) co_return false;
  if (!writer->finished()) {
    socket_.abort();
    co_return false;
  }
  if (writer->keep_alive() && !finishing_ && co_await body->drain(options_.max_drain_bytes)) {
    co_return true;
  }
  co_await close_gently();
  co_return false;
}

Task<void> Connection::refuse(ProtocolError error) {
  ResponseHeadOptions head;
  Response response = error_response(error.status, code_of(error.status), error.message);
  head.status = response.status;
  head.length = response.body.size();
  head.connection = "close";
  auto text = format_response_head(head, response.headers);
  if (!text) co_return;
  WriteParts parts{*text, response.body};
  // At most one attempt: a client this broken is not waited for.
  if (auto sent = socket_.try_write(parts); !sent) co_return;
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
  if (writer_ == nullptr) socket_.cancel();
}

void Connection::abort() {
  finishing_ = true;
  aborted_ = true;
  socket_.abort();
  if (writer_ != nullptr) writer_->abandon();
  cancellation_.emit(boost::asio::cancellation_type::terminal);
}

}  // namespace atl::http
