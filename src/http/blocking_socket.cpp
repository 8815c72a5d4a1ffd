#include "http/blocking_socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <memory>

namespace atl::http {
namespace {

constexpr int kFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

Result<void> wait_for(int fd, short events, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  auto deadline = Clock::now() + timeout;
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    int wait_ms = timeout.count() == 0 ? -1 : static_cast<int>(std::max<int64_t>(left.count(), 0));
    pollfd polled{fd, events, 0};
    int ready = ::poll(&polled, 1, wait_ms);
    if (ready > 0) return {};
    if (ready == 0) return fail(ErrorCode::Timeout, "the server did not answer in time");
    if (errno != EINTR) return fail_errno("poll");
  }
}

// A Unix socket with a full backlog says EAGAIN and cannot be waited for, so it is asked again.
int connect_patiently(int fd, const sockaddr* address, socklen_t length,
                      std::chrono::milliseconds timeout) {
  constexpr int kPauseMs = 5;
  auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    int result = ::connect(fd, address, length);
    if (result == 0 || errno != EAGAIN || std::chrono::steady_clock::now() >= deadline) {
      return result;
    }
    ::poll(nullptr, 0, kPauseMs);
  }
}

Result<UniqueFd> connect_to(const sockaddr* address, socklen_t length, std::string_view name,
                            std::chrono::milliseconds timeout) {
  UniqueFd fd(::socket(address->sa_family, kFlags, 0));
  if (!fd.valid()) return fail_errno("socket");
  if (connect_patiently(fd.get(), address, length, timeout) != 0) {
    if (errno == EAGAIN)
      return fail(ErrorCode::Unavailable, "the server is busy: " + std::string(name));
    if (errno != EINPROGRESS) return fail_errno("connect", name);
    ATOLL_TRY(wait_for(fd.get(), POLLOUT, timeout));
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return fail(Error::from_errno(error, "connect", name));
  }
  if (address->sa_family != AF_UNIX) {
    int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return fd;
}

Result<UniqueFd> connect_unix(const std::string& path, std::chrono::milliseconds timeout) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return fail(ErrorCode::InvalidArgument, "socket path is too long: " + path);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof(address), path, timeout);
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

Result<UniqueFd> connect_tcp(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  int error = getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &raw);
  if (error != 0) {
    return fail(ErrorCode::Unavailable, "resolving " + endpoint.host + ": " + gai_strerror(error));
  }
  std::unique_ptr<addrinfo, FreeAddresses> list(raw);
  Result<UniqueFd> fd = fail(ErrorCode::Unavailable, "no address for " + endpoint.host);
  for (const addrinfo* entry = list.get(); entry != nullptr && !fd; entry = entry->ai_next) {
    fd = connect_to(entry->ai_addr, entry->ai_addrlen, endpoint.authority(), timeout);
  }
  return fd;
}

}  // namespace

Result<Endpoint> Endpoint::parse(std::string_view text) {
  Endpoint endpoint;
  if (text.starts_with("unix:")) {
    endpoint.unix_path = text.substr(text.starts_with("unix:///") ? 7 : 5);
    if (endpoint.unix_path.empty()) return fail(ErrorCode::InvalidArgument, "unix: without a path");
    return endpoint;
  }
  constexpr std::string_view kScheme = "http://";
  if (!text.starts_with(kScheme)) {
    return fail(ErrorCode::InvalidArgument,
                "endpoint must be unix:/path or http://host:port: " + std::string(text));
  }
  text.remove_prefix(kScheme.size());
  while (text.ends_with('/')) text.remove_suffix(1);
  size_t colon = text.rfind(':');
  // "[::1]" has colons of its own.
  if (colon != std::string_view::npos && text.find(']', colon) != std::string_view::npos) {
    colon = std::string_view::npos;
  }
  endpoint.port = colon == std::string_view::npos ? "80" : std::string(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  endpoint.host = host;
  bool port_ok = !endpoint.port.empty() && endpoint.port.size() <= 5 &&
                 endpoint.port.find_first_not_of("0123456789") == std::string::npos;
  if (endpoint.host.empty() || host.find('/') != std::string_view::npos || !port_ok) {
    return fail(ErrorCode::InvalidArgument, "malformed endpoint: " + std::string(text));
  }
  return endpoint;
}

std::string Endpoint::authority() const {
  if (!unix_path.empty()) return "localhost";
  bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + (port == "80" ? "" : ":" + port);
}

Result<BlockingSocket> BlockingSocket::connect(const Endpoint& endpoint, Duration timeout) {
  Result<UniqueFd> fd = endpoint.unix_path.empty() ? connect_tcp(endpoint, timeout)
                                                   : connect_unix(endpoint.unix_path, timeout);
  if (!fd) return tl::unexpected(std::move(fd).error());
  return BlockingSocket(std::move(*fd));
}

Result<std::optional<size_t>> BlockingSocket::try_read(std::span<char> into) {
  return receive_now(fd(), into);
}

Result<size_t> BlockingSocket::read(std::span<char> into) {
  while (true) {
    ATOLL_ASSIGN(std::optional<size_t> got, receive_now(fd(), into));
    if (got) return *got;
    ATOLL_TRY(wait_for(fd(), POLLIN, timeout_));
  }
}

Result<void> BlockingSocket::write(WriteParts parts) {
  while (true) {
    ATOLL_ASSIGN(bool done, send_now(fd(), parts));
    if (done) return {};
    ATOLL_TRY(wait_for(fd(), POLLOUT, timeout_));
  }
}

bool BlockingSocket::readable_now() const {
  pollfd polled{fd(), POLLIN | POLLRDHUP, 0};
  return ::poll(&polled, 1, 0) != 0;
}

}  // namespace atl::http
