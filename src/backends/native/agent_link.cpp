#include "backends/native/agent_link.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/unique_fd.h"

namespace atl::native {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;

Error agent_gone() {
  return Error(ErrorCode::Unavailable, "the sandbox has ended or its agent hung up");
}

Task<Result<std::unique_ptr<AgentLink>>> AgentLink::connect(asio::any_io_executor executor,
                                                            std::string path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) co_return fail_errno("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    co_return fail(ErrorCode::InvalidArgument, "the run directory's path is too long");
  }
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  // A local connect never waits, except where the backlog is full: then the agent is stuck.
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    co_return fail(Error::from_errno(errno, "connect", "to the sandbox's agent")
                       .with_code(ErrorCode::Unavailable));
  }
  co_return std::make_unique<AgentLink>(Descriptor(executor, fd.release()));
}

Task<Result<void>> AgentLink::wait_writable() {
  auto [error] =
      co_await socket_.async_wait(Descriptor::wait_write, asio::as_tuple(asio::use_awaitable));
  if (error) co_return fail(agent_gone());
  co_return Result<void>();
}

Task<Result<void>> AgentLink::write(std::string bytes) { co_return co_await write_all(bytes, {}); }

Task<Result<void>> AgentLink::send_payload(wire::AgentType type, std::string_view payload) {
  std::string header;
  wire::append_header(
      header, {.size = static_cast<uint32_t>(payload.size()), .type = static_cast<uint16_t>(type)});
  co_return co_await write_all(header, payload);
}

Task<Result<void>> AgentLink::write_all(std::string_view first, std::string_view second) {
  while (!first.empty() || !second.empty()) {
    if (!socket_.is_open()) co_return fail(agent_gone());
    iovec parts[] = {{const_cast<char*>(first.data()), first.size()},
                     {const_cast<char*>(second.data()), second.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    ssize_t size = sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size >= 0) {
      size_t of_first = std::min(static_cast<size_t>(size), first.size());
      first.remove_prefix(of_first);
      second.remove_prefix(static_cast<size_t>(size) - of_first);
    } else if (errno == EAGAIN) {
      ATOLL_CO_TRY(co_await wait_writable());
    } else if (errno != EINTR) {
      co_return fail(agent_gone());
    }
  }
  co_return Result<void>();
}

Task<Result<void>> AgentLink::fill() {
  for (;;) {
    if (!socket_.is_open()) co_return fail(agent_gone());
    size_t wanted = in_.wanted(read_size_);
    char* space = in_.prepare(wanted);
    ssize_t size = recv(socket_.native_handle(), space, wanted, MSG_DONTWAIT);
    if (size > 0) {
      in_.commit(static_cast<size_t>(size));
      co_return Result<void>();
    }
    if (size < 0 && errno == EINTR) continue;
    if (size == 0 || errno != EAGAIN) co_return fail(agent_gone());
    in_.shrink();
    auto [error] =
        co_await socket_.async_wait(Descriptor::wait_read, asio::as_tuple(asio::use_awaitable));
    if (error) co_return fail(agent_gone());
  }
}

Error agent_failure(const wire::Frame& frame) {
  auto failure = wire::decode<wire::Failure>(frame.payload);
  if (!failure) return std::move(failure).error();
  auto code = failure->code <= static_cast<uint8_t>(ErrorCode::Internal)
                  ? static_cast<ErrorCode>(failure->code)
                  : ErrorCode::Internal;
  Error error(code, failure->message);
  if (!failure->field.empty()) return std::move(error).with_field(failure->field);
  return error;
}

Task<Result<wire::Frame>> AgentLink::receive_any() {
  for (;;) {
    ATOLL_CO_ASSIGN(auto frame, in_.next());
    if (frame) co_return *frame;
    ATOLL_CO_TRY(co_await fill());
  }
}

Task<Result<wire::Frame>> AgentLink::receive() {
  ATOLL_CO_ASSIGN(wire::Frame frame, co_await receive_any());
  if (frame.type == static_cast<uint16_t>(wire::AgentType::Failure)) {
    co_return fail(agent_failure(frame));
  }
  co_return frame;
}

void AgentLink::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace atl::native
