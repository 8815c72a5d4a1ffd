#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "http/socket_calls.h"

namespace atl::http {

// Where a client connects to.
struct Endpoint {
  std::string unix_path;  // or, when empty:
  std::string host;
  std::string port;

  // "unix:/path" or "http://host[:port]".
  static Result<Endpoint> parse(std::string_view text);
  // The Host field.
  std::string authority() const;
};

// A connected socket for code without an event loop: every wait is a poll() with a timeout.
class BlockingSocket {
 public:
  using Duration = std::chrono::milliseconds;

  static Result<BlockingSocket> connect(const Endpoint& endpoint, Duration timeout);

  // Fails with Timeout when nothing moves for so long; zero waits for ever.
  void set_timeout(Duration timeout) { timeout_ = timeout; }
  Duration timeout() const { return timeout_; }

  // 0 is the end of the stream.
  Result<size_t> read(std::span<char> into);
  Result<std::optional<size_t>> try_read(std::span<char> into);
  Result<void> write(WriteParts parts);

  // Has something to read, be it only the end? On an idle connection that means it is dead.
  bool readable_now() const;
  int fd() const { return fd_.get(); }

 private:
  explicit BlockingSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
  Duration timeout_{0};
};

}  // namespace atl::http
