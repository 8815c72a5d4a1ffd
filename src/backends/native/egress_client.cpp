#include "backends/native/egress_client.h"

#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace atl::native {

namespace asio = boost::asio;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

EgressClient::EgressClient(asio::any_io_executor executor, UniqueFd socket)
    : RequestChannel("egress"),
      executor_(executor),
      socket_(executor, socket.release()),
      sending_(executor) {}

void EgressClient::start() {
  auto self = shared_from_this();
  asio::co_spawn(
      executor_, [self]() -> Task<void> { return self->read_loop(); }, asio::detached);
}

Task<Result<void>> EgressClient::send(std::string bytes) {
  auto turn = co_await sending_.lock();
  std::string_view left = bytes;
  while (!left.empty()) {
    ssize_t size =
        ::send(socket_.native_handle(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size > 0) {
      left.remove_prefix(static_cast<size_t>(size));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      co_return fail(
          Error::from_errno(errno, "send", "to egress").with_code(ErrorCode::Unavailable));
    }
    (void)co_await socket_.async_wait(asio::posix::descriptor_base::wait_write, kAwait);
  }
  co_return Result<void>();
}

Task<void> EgressClient::read_loop() {
  wire::FrameBuffer in;
  for (;;) {
    auto [error] = co_await socket_.async_wait(asio::posix::descriptor_base::wait_read, kAwait);
    if (error) break;
    size_t room = in.wanted(16u << 10);
    ssize_t got = recv(socket_.native_handle(), in.prepare(room), room, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) break;
    in.commit(static_cast<size_t>(got));
    bool sound = true;
    for (;;) {
      auto frame = in.next();
      sound = frame.has_value();
      if (!sound || !*frame) break;
      handle(**frame);
    }
    if (!sound) break;
    in.shrink();
  }
  // The supervisor starts all of us again.
  fail_all(Error(ErrorCode::Unavailable, "egress has ended; try again"));
}

void EgressClient::handle(const wire::Frame& frame) {
  if (frame.type == static_cast<uint16_t>(wire::EgressType::Traffic)) {
    auto traffic = wire::decode<wire::Traffic>(frame.payload);
    if (traffic && traffic_) traffic_(std::move(*traffic));
    return;
  }
  if (frame.type == static_cast<uint16_t>(wire::EgressType::Failure)) {
    auto failure = wire::decode<wire::EgressFailure>(frame.payload);
    answer(frame.id, failure ? fail(static_cast<ErrorCode>(failure->code), failure->message)
                             : fail(std::move(failure).error()));
    return;
  }
  answer(frame.id, RawReply{.type = frame.type, .payload = std::string(frame.payload)});
}

}  // namespace atl::native
