#include "http/socket.h"

#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace atl::http {

namespace asio = boost::asio;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// A peer as fast as we are would otherwise keep the thread for the whole of its gigabyte.
constexpr int kCallsBetweenYields = 32;

// Asio makes nothing of the family but getsockname(), which nobody asks for.
const asio::generic::stream_protocol kAnyStream(AF_UNIX, 0);

struct Socket::State {
  State(const asio::any_io_executor& executor, UniqueFd fd, DeadlineQueue& deadlines,
        std::unique_ptr<TlsSession> session)
      : socket(executor, kAnyStream, fd.release()),
        read_deadline(deadlines, [this] { expire(); }),
        write_deadline(deadlines, [this] { expire(); }),
        tls(std::move(session)) {}

  void expire() {
    timed_out = true;
    boost::system::error_code ignored;
    socket.cancel(ignored);
  }

  // As a socket rather than as a descriptor: recv() is cheaper than read().
  asio::generic::stream_protocol::socket socket;
  Deadline read_deadline;
  Deadline write_deadline;
  bool timed_out = false;
  int calls_since_yield = 0;
  std::unique_ptr<TlsSession> tls;  // last, as it says goodbye over the socket
};

namespace {

Result<void> check(const boost::system::error_code& error, bool timed_out) {
  if (timed_out) return fail(ErrorCode::Timeout, "the peer is too slow");
  if (!error) return {};
  if (error == asio::error::operation_aborted) return fail(ErrorCode::Cancelled, "cancelled");
  return fail(ErrorCode::Unavailable, "connection lost: " + error.message());
}

}  // namespace

Socket::Socket(asio::any_io_executor executor, UniqueFd fd, DeadlineQueue& deadlines,
               std::unique_ptr<TlsSession> tls)
    : state_(std::make_shared<State>(executor, std::move(fd), deadlines, std::move(tls))) {}

Socket::~Socket() = default;

Task<Result<void>> Socket::handshake(Clock::time_point deadline) {
  while (true) {
    ATOLL_CO_ASSIGN(bool done, state_->tls->handshake());
    if (done) co_return Result<void>();
    ATOLL_CO_TRY(co_await wait(Direction::Read, deadline));
  }
}

bool Socket::encrypted() const { return state_->tls != nullptr; }

bool Socket::falls_back_to_plain() {
  if (!state_->tls || !state_->tls->met_plain_http()) return false;
  state_->tls.reset();
  return true;
}

Result<std::optional<size_t>> Socket::try_read(std::span<char> into) {
  if (state_->tls) return state_->tls->read_now(into);
  return receive_now(native_handle(), into);
}

Task<Result<size_t>> Socket::read(std::span<char> into, Duration timeout) {
  while (true) {
    if (state_->timed_out) co_return fail(ErrorCode::Timeout, "the peer is too slow");
    ATOLL_CO_ASSIGN(std::optional<size_t> got, try_read(into));
    if (got) {
      if (++state_->calls_since_yield >= kCallsBetweenYields) co_await yield_now_and_then();
      co_return *got;
    }
    ATOLL_CO_TRY(co_await wait(Direction::Read, Clock::now() + timeout));
  }
}

Task<Result<size_t>> Socket::read_later(std::span<char> into, Clock::time_point deadline) {
  if (state_->timed_out) co_return fail(ErrorCode::Timeout, "the peer is too slow");
  if (state_->tls) {
    while (true) {
      ATOLL_CO_ASSIGN(std::optional<size_t> read, try_read(into));
      if (read) co_return *read;
      ATOLL_CO_TRY(co_await wait(Direction::Read, deadline));
    }
  }
  // Asio's own read, unlike a wait, needs no epoll_ctl each time.
  auto state = state_;
  state->read_deadline.set(deadline);
  auto [error, got] =
      co_await state->socket.async_read_some(asio::buffer(into.data(), into.size()), kAwait);
  state->read_deadline.clear();
  if (error == asio::error::eof) co_return size_t{0};
  ATOLL_CO_TRY(check(error, state->timed_out));
  co_return got;
}

Result<bool> Socket::try_write(WriteParts& parts) {
  if (!state_->tls) return send_now(native_handle(), parts);
  // What timed out may have left half a record behind, which other bytes must not follow.
  if (state_->timed_out) return fail(ErrorCode::Timeout, "the peer is too slow");
  return state_->tls->write_now(parts);
}

Task<Result<void>> Socket::write(WriteParts parts, Duration timeout) {
  while (true) {
    if (state_->timed_out) co_return fail(ErrorCode::Timeout, "the peer is too slow");
    ATOLL_CO_ASSIGN(bool done, try_write(parts));
    if (done) break;
    ATOLL_CO_TRY(co_await wait(Direction::Write, Clock::now() + timeout));
  }
  if (++state_->calls_since_yield >= kCallsBetweenYields) co_await yield_now_and_then();
  co_return Result<void>();
}

Task<void> Socket::yield_now_and_then() {
  state_->calls_since_yield = 0;
  co_await asio::post(asio::use_awaitable);
}

Task<Result<void>> Socket::wait(Direction purpose, Clock::time_point deadline) {
  bool reading = purpose == Direction::Read;
  auto state = state_;
  state->calls_since_yield = 0;
  Deadline& armed = reading ? state->read_deadline : state->write_deadline;
  armed.set(deadline);
  if (state->tls) {
    auto what = reading ? state->tls->read_waits_for() : state->tls->write_waits_for();
    reading = what == TlsSession::Wait::Readable;
  }
  auto kind = reading ? asio::socket_base::wait_read : asio::socket_base::wait_write;
  auto [error] = co_await state->socket.async_wait(kind, kAwait);
  armed.clear();
  co_return check(error, state->timed_out);
}

Task<Result<void>> Socket::wait_readable(Duration timeout) {
  if (state_->tls && state_->tls->has_buffered()) co_return Result<void>();
  co_return co_await wait(Direction::Read, Clock::now() + timeout);
}
Task<Result<void>> Socket::wait_writable(Duration timeout) {
  return wait(Direction::Write, Clock::now() + timeout);
}

void Socket::notify_readable(std::function<void()> callback) {
  state_->socket.async_wait(
      asio::socket_base::wait_read,
      [callback = std::move(callback)](const boost::system::error_code& error) {
        if (!error) callback();
      });
}

void Socket::cancel() {
  boost::system::error_code ignored;
  state_->socket.cancel(ignored);
}

void Socket::shut_down_writing() {
  if (state_->tls) state_->tls->close_notify();
  ::shutdown(native_handle(), SHUT_WR);
}

void Socket::abort() {
  if (!state_->socket.is_open()) return;
  ::shutdown(native_handle(), SHUT_RDWR);
  cancel();
}

bool Socket::timed_out() const { return state_->timed_out; }
asio::any_io_executor Socket::executor() const { return state_->socket.get_executor(); }
int Socket::native_handle() const { return state_->socket.native_handle(); }
Socket::Released Socket::release() {
  return {UniqueFd(state_->socket.release()), std::move(state_->tls)};
}

}  // namespace atl::http
