#include "backends/native/launcher_client.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "os/fd_passing.h"

namespace atl::native {

namespace asio = boost::asio;
static constexpr size_t kMaxMessage = 256u << 10;
static constexpr size_t kMaxFds = 4;

LauncherClient::LauncherClient(asio::any_io_executor executor, UniqueFd socket)
    : RequestChannel("the launcher"), executor_(executor), socket_(executor, socket.release()) {
  int size = static_cast<int>(kMaxMessage);
  setsockopt(socket_.native_handle(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

void LauncherClient::start() {
  auto self = shared_from_this();
  asio::co_spawn(
      executor_, [self]() -> Task<void> { return self->read_loop(); }, asio::detached);
}

// One datagram a request: it goes out whole or not at all.
Task<Result<void>> LauncherClient::send(std::string bytes) {
  for (;;) {
    ssize_t size =
        ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size >= 0) co_return Result<void>();
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      co_return fail(
          Error::from_errno(errno, "send", "to the launcher").with_code(ErrorCode::Unavailable));
    }
    co_await socket_.async_wait(asio::posix::stream_descriptor::wait_write,
                                asio::as_tuple(asio::use_awaitable));
  }
}

Task<void> LauncherClient::read_loop() {
  std::string buffer(kMaxMessage, 0);
  for (;;) {
    auto [error] = co_await socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                                               asio::as_tuple(asio::use_awaitable));
    if (error) break;
    std::vector<UniqueFd> fds;
    auto size = os::receive_into(socket_.native_handle(), buffer, kMaxFds, fds);
    if (!size) {
      if (size.error().sys_errno() == EAGAIN || size.error().sys_errno() == EINTR) continue;
      break;
    }
    if (*size == 0) break;
    handle({buffer.data(), *size}, std::move(fds));
  }
  fail_all(Error(ErrorCode::Unavailable, "the launcher has ended; restart atoll serve"));
  if (lost_) lost_();
}

void LauncherClient::handle(std::string_view message, std::vector<UniqueFd> fds) {
  if (message.size() < wire::kHeaderBytes) return;
  wire::FrameHeader header = wire::parse_header(message.data());
  std::string_view payload = message.substr(wire::kHeaderBytes);
  if (header.type == static_cast<uint16_t>(wire::LauncherType::Ended)) {
    auto ended = wire::decode<wire::Ended>(payload);
    if (ended && ended_) ended_(*ended);
    return;
  }
  if (header.type == static_cast<uint16_t>(wire::LauncherType::ImportProgress)) {
    auto progress = wire::decode<wire::ImportProgress>(payload);
    if (progress && import_progress_) import_progress_(*progress);
    return;
  }
  if (header.type == static_cast<uint16_t>(wire::LauncherType::Failure)) {
    auto failure = wire::decode<wire::LauncherFailure>(payload);
    answer(header.id, failure ? fail(static_cast<ErrorCode>(failure->code), failure->message)
                              : fail(std::move(failure).error()));
    return;
  }
  answer(header.id,
         RawReply{.type = header.type, .payload = std::string(payload), .fds = std::move(fds)});
}

}  // namespace atl::native
