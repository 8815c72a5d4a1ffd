// A server in a process of its own, so that its memory and its CPU time are nobody else's.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/result.h"
#include "http/tls_context.h"

namespace atl::bench {

class ForkedServer {
 public:
  // `serve` runs in the child, on `cpu`, and never returns; it listens on the path it is given.
  // Call this before there are threads.
  static Result<ForkedServer> start(const std::function<void(const std::string&)>& serve, int cpu);
  ForkedServer(ForkedServer&& other) noexcept;
  ForkedServer& operator=(ForkedServer&&) = delete;
  ~ForkedServer();

  std::string endpoint() const { return "unix:" + path_; }
  const std::string& path() const { return path_; }
  pid_t pid() const { return pid_; }
  double cpu_seconds() const;
  // Resident memory that is its own.
  double anonymous_kib() const;

 private:
  ForkedServer(pid_t pid, std::string path) : pid_(pid), path_(std::move(path)) {}

  pid_t pid_;
  std::string path_;
};

// The real server with a router of the simplest kind: GET /json, and GET /events, which sends an
// event at once and then waits for the client to leave.
void serve_simple(const std::string& path);
// The same with HTTPS on a listening socket besides.
void serve_simple_tls(const std::string& path, int listener, const http::TlsOptions& tls);
// What the kernel alone allows: epoll, recv, one constant answer. The upper bound for any server.
void serve_raw(const std::string& path);

// The answer's body in both.
inline constexpr const char* kSmallJson = R"({"status":"ok","sandboxes":3,"version":"0.1.0"})";

void pin_to_cpu(int cpu);

}  // namespace atl::bench
