// Connections into sandboxes: the launcher makes the socket in the sandbox's network, we connect
// it. Nothing inside has a part in it but whoever listens.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>

#include "backends/native/native_backend.h"

namespace atl::native {

namespace asio = boost::asio;

namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address loopback(bool six, uint16_t port) {
  Address address;
  if (six) {
    auto& to = reinterpret_cast<sockaddr_in6&>(address.storage);
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(port);
    to.sin6_addr = in6addr_loopback;
    address.size = sizeof to;
  } else {
    auto& to = reinterpret_cast<sockaddr_in&>(address.storage);
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.size = sizeof to;
  }
  return address;
}

// Where nobody listens the kernel may choose that very port as the near end, and the socket is
// connected to itself.
bool is_own_peer(int fd) {
  Address near, far;
  if (getsockname(fd, near.get(), &near.size) != 0) return false;
  if (getpeername(fd, far.get(), &far.size) != 0) return false;
  return near.size == far.size && memcmp(&near.storage, &far.storage, near.size) == 0;
}

// A descriptor that somebody else closes, whatever becomes of the wait for it.
struct Waiting {
  Waiting(const asio::any_io_executor& executor, int fd) : descriptor(executor, fd) {}
  ~Waiting() { descriptor.release(); }
  asio::posix::stream_descriptor descriptor;
  bool late = false;
};

// The error of an attempt, or 0.
Task<int> try_connect(int fd, Address to, asio::steady_timer::time_point deadline) {
  if (connect(fd, to.get(), to.size) == 0) co_return 0;
  if (errno != EINPROGRESS) co_return errno;
  auto executor = co_await asio::this_coro::executor;
  auto waiting = std::make_shared<Waiting>(executor, fd);
  asio::steady_timer timer(executor, deadline);
  timer.async_wait([weak = std::weak_ptr(waiting)](boost::system::error_code error) {
    auto late = weak.lock();
    if (error || late == nullptr) return;
    late->late = true;
    boost::system::error_code ignored;
    late->descriptor.cancel(ignored);
  });
  (void)co_await waiting->descriptor.async_wait(asio::posix::stream_descriptor::wait_write,
                                                asio::as_tuple(asio::use_awaitable));
  if (waiting->late) co_return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  co_return error;
}

}  // namespace

Task<Result<UniqueFd>> NativeHandle::dial(uint16_t port, std::chrono::milliseconds limit) {
  auto deadline = asio::steady_timer::clock_type::now() + limit;
  ATOLL_CO_ASSIGN(auto sockets, (co_await backend_.launcher_->call_for_fds<wire::Dialable>(
                                    wire::DialRequest{.slot = place_.slot}, ReplyLimit(limit))));
  if (sockets.size() != 2) co_return fail(ErrorCode::Internal, "the launcher sent no sockets");
  int error = 0;
  for (bool six : {false, true}) {
    UniqueFd& fd = sockets[six ? 1 : 0];
    error = co_await try_connect(fd.get(), loopback(six, port), deadline);
    if (error == 0 && is_own_peer(fd.get())) error = ECONNREFUSED;
    if (error == ETIMEDOUT) break;
    if (error != 0) continue;
    int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    co_return std::move(fd);
  }
  if (error == ETIMEDOUT) {
    co_return fail(ErrorCode::Timeout, "port " + std::to_string(port) + " takes no connections");
  }
  co_return fail(ErrorCode::Unavailable, "nothing listens on " + std::to_string(port) +
                                             " in the sandbox: the port is not open");
}

}  // namespace atl::native
