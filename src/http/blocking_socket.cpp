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

const char* default_port(bool tls) { return tls ? "443" : "80"; }

short events_for(TlsSession::Wait wait) {
  return wait == TlsSession::Wait::Writable ? POLLOUT : POLLIN;
}

}  // namespace

Result<Endpoint> Endpoint::parse(std::string_view text) {
  Endpoint endpoint;
  if (text.starts_with("unix:")) {
    endpoint.unix_path = text.substr(text.starts_with("unix:///") ? 7 : 5);
    if (endpoint.unix_path.empty()) return fail(ErrorCode::InvalidArgument, "unix: without a path");
    return endpoint;
  }
  endpoint.tls = text.starts_with("https://");
  if (!endpoint.tls && !text.starts_with("http://")) {
    return fail(ErrorCode::InvalidArgument,
                "endpoint must be unix:/path or http(s)://host:port: " + std::string(text));
  }
  text.remove_prefix(text.find("//") + 2);
  while (text.ends_with('/')) text.remove_suffix(1);
  size_t colon = text.rfind(':');
  // "[::1]" has colons of its own.
  if (colon != std::string_view::npos && text.find(']', colon) != std::string_view::npos) {
    colon = std::string_view::npos;
  }
  endpoint.port = colon == std::string_view::npos ? default_port(endpoint.tls)
                                                  : std::string(text.substr(colon + 1));
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
  return (is_v6 ? "[" + host + "]" : host) + (port == default_port(tls) ? "" : ":" + port);
}

Result<BlockingSocket> BlockingSocket::connect(const Endpoint& endpoint, Duration timeout,
                                               const TlsClientContext* tls) {
  if (endpoint.tls && tls == nullptr) {
    return fail(ErrorCode::InvalidArgument, "https needs certificate authorities");
  }
  Result<UniqueFd> fd = endpoint.unix_path.empty() ? connect_tcp(endpoint, timeout)
                                                   : connect_unix(endpoint.unix_path, timeout);
  if (!fd) return tl::unexpected(std::move(fd).error());
  BlockingSocket socket(std::move(*fd));
  if (endpoint.tls) {
    auto done = socket.shake_hands(*tls, endpoint.host, timeout);
    if (!done) return fail(std::move(done).error().context(endpoint.authority()));
  }
  return socket;
}

Result<void> BlockingSocket::shake_hands(const TlsClientContext& tls, const std::string& host,
                                         Duration timeout) {
  ATOLL_ASSIGN(tls_, tls.connect(fd(), host));
  while (true) {
    ATOLL_ASSIGN(bool done, tls_->handshake());
    if (done) return {};
    ATOLL_TRY(wait_for(fd(), events_for(tls_->read_waits_for()), timeout));
  }
}

Result<std::optional<size_t>> BlockingSocket::try_read(std::span<char> into) {
  return tls_ ? tls_->read_now(into) : receive_now(fd(), into);
}

Result<size_t> BlockingSocket::read(std::span<char> into) {
  while (true) {
    ATOLL_ASSIGN(std::optional<size_t> got, try_read(into));
    if (got) return *got;
    ATOLL_TRY(wait_for(fd(), tls_ ? events_for(tls_->read_waits_for()) : POLLIN, timeout_));
  }
}

Result<void> BlockingSocket::write(WriteParts parts) {
  while (true) {
    ATOLL_ASSIGN(bool done, tls_ ? tls_->write_now(parts) : send_now(fd(), parts));
    if (done) return {};
    ATOLL_TRY(wait_for(fd(), tls_ ? events_for(tls_->write_waits_for()) : POLLOUT, timeout_));
  }
}

Result<bool> BlockingSocket::try_write(WriteParts& parts) {
  return tls_ ? tls_->write_now(parts) : send_now(fd(), parts);
}

void BlockingSocket::end_writing() {
  if (tls_) tls_->close_notify();
  ::shutdown(fd(), SHUT_WR);
}

bool BlockingSocket::readable_now() {
  if (has_buffered()) return true;
  pollfd polled{fd(), POLLIN | POLLRDHUP, 0};
  if (::poll(&polled, 1, 0) == 0) return false;
  if (!tls_ || (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return true;
  // TLS has messages of its own, such as tickets for later. Any byte of HTTP's means the end here.
  char byte = 0;
  auto got = tls_->read_now({&byte, 1});
  return !got || got->has_value();
}

}  // namespace atl::http
