#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "http/socket_calls.h"
#include "http/tls_context.h"

namespace atl::http {

// Where a client connects to.
struct Endpoint {
  std::string unix_path;  // or, when empty:
  std::string host;
  std::string port;
  bool tls = false;

  // "unix:/path", "http://host[:port]" or "https://host[:port]".
  static Result<Endpoint> parse(std::string_view text);
  // The Host field.
  std::string authority() const;
};

// A connected socket for code without an event loop: every wait is a poll() with a timeout.
class BlockingSocket {
 public:
  using Duration = std::chrono::milliseconds;

  // `tls` is for endpoints that want it. The timeout is for each of connecting and the handshake.
  static Result<BlockingSocket> connect(const Endpoint& endpoint, Duration timeout,
                                        const TlsClientContext* tls = nullptr);

  // Fails with Timeout when nothing moves for so long; zero waits for ever.
  void set_timeout(Duration timeout) { timeout_ = timeout; }
  Duration timeout() const { return timeout_; }

  // 0 is the end of the stream.
  Result<size_t> read(std::span<char> into);
  Result<std::optional<size_t>> try_read(std::span<char> into);
  Result<void> write(WriteParts parts);
  // What can be sent at once is dropped from the front; true when that was everything.
  Result<bool> try_write(WriteParts& parts);
  void end_writing();

  // Has something to read, be it only the end? On an idle connection that means it is dead.
  bool readable_now();
  int fd() const { return fd_.get(); }
  // Bytes that poll() on fd() does not show.
  bool has_buffered() const { return tls_ && tls_->has_buffered(); }

 private:
  explicit BlockingSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  Result<void> shake_hands(const TlsClientContext& tls, const std::string& host, Duration timeout);

  UniqueFd fd_;
  Duration timeout_{0};
  std::unique_ptr<TlsSession> tls_;  // after the socket, so that it goes first
};

}  // namespace atl::http
