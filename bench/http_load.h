// Requests as fast as a server answers them, over connections that are kept open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "http/blocking_socket.h"
#include "stats.h"

namespace atl::bench {

struct HttpLoadOptions {
  std::string endpoint;  // "unix:/path" or "http://host:port"
  unsigned connections = 64;
  std::string request;  // its bytes, the same every time

  // A GET of `target` with no more fields than a request must have.
  static std::string get(const std::string& target);
};

struct HttpLoadResult {
  uint64_t responses = 0;
  uint64_t failures = 0;  // among them: any status but 2xx
  double seconds = 0;
  Samples latency_us;

  double per_second() const { return static_cast<double>(responses) / seconds; }
};

// One thread, one epoll; every connection has one request under way. Answers must have a
// Content-Length. Fails when the server closes a connection or talks nonsense.
class HttpLoad {
 public:
  static Result<HttpLoad> connect(HttpLoadOptions options);

  // May be called again.
  Result<HttpLoadResult> run(double seconds);

 private:
  struct Connection {
    http::BlockingSocket socket;
    std::string received;
    Stopwatch watch;
  };
  HttpLoad(HttpLoadOptions options, UniqueFd epoll)
      : options_(std::move(options)), epoll_(std::move(epoll)) {}

  Result<void> send_request(Connection& connection);
  // True once the whole answer is there.
  Result<bool> receive(Connection& connection, HttpLoadResult& result);
  Result<void> take_turn(Connection& connection, bool go_on, HttpLoadResult& result);

  HttpLoadOptions options_;
  UniqueFd epoll_;
  std::vector<Connection> connections_;
  size_t waiting_ = 0;  // connections with a request under way
};

}  // namespace atl::bench
