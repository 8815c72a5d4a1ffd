#include "cli/forward.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include <charconv>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "cli/json_out.h"
#include "cli/report.h"

namespace atl::cli {
namespace {

constexpr size_t kBufferBytes = 128 * 1024;

struct Listener {
  UniqueFd fd;
  uint16_t port = 0;
};

Result<Listener> listen_locally(uint16_t port) {
  Listener listener;
  listener.fd.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.fd.valid()) return fail_errno("socket");
  int on = 1;
  setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.fd.get(), generic, size) != 0) {
    return fail_errno("bind", fmt::format("127.0.0.1:{} (choose another with LOCAL:PORT)", port));
  }
  if (listen(listener.fd.get(), 128) != 0) return fail_errno("listen");
  getsockname(listener.fd.get(), generic, &size);
  listener.port = ntohs(address.sin_port);
  return listener;
}

// Bytes between a local connection and the sandbox's, as each side takes them.
class Carrier {
 public:
  Carrier(UniqueFd local, PortConnection remote)
      : local_(std::move(local)), remote_(std::move(remote)) {}

  void run() {
    while (!(out_.ended && back_.ended) && turn()) {
    }
  }

 private:
  struct Way {
    std::string waiting;
    bool ended = false;  // and passed on
  };

  bool turn() {
    pollfd polled[2] = {{local_.get(), 0, 0}, {remote_.fd(), 0, 0}};
    if (!out_.ended && out_.waiting.empty()) polled[0].events |= POLLIN;
    if (!out_.waiting.empty()) polled[1].events |= POLLOUT;
    if (!back_.ended && back_.waiting.empty()) polled[1].events |= POLLIN;
    if (!back_.waiting.empty()) polled[0].events |= POLLOUT;
    // Nothing is wanted of it: that it has hung up is no news either.
    for (pollfd& one : polled) {
      if (one.events == 0) one.fd = -1;
    }
    bool ahead = remote_.pending() && back_.waiting.empty();
    if (poll(polled, 2, ahead ? 0 : -1) < 0) return errno == EINTR;
    if (!back_.ended && back_.waiting.empty() && (ahead || polled[1].revents != 0)) {
      if (!read_remote()) return false;
    }
    if (!out_.ended && out_.waiting.empty() && polled[0].revents != 0 && !read_local()) {
      return false;
    }
    return write_remote() && write_local();
  }

  bool read_local() {
    ssize_t got = recv(local_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) {
      remote_.end_writing();
      out_.ended = true;
      return true;
    }
    out_.waiting.assign(buffer_.data(), static_cast<size_t>(got));
    return true;
  }

  bool read_remote() {
    auto got = remote_.try_read(buffer_);
    if (!got) return false;
    if (!*got) return true;
    if (**got == 0) {
      shutdown(local_.get(), SHUT_WR);
      back_.ended = true;
      return true;
    }
    back_.waiting.assign(buffer_.data(), **got);
    return true;
  }

  bool write_remote() {
    if (out_.waiting.empty()) return true;
    auto sent = remote_.try_write(out_.waiting);
    if (!sent) return false;
    out_.waiting.erase(0, *sent);
    return true;
  }

  bool write_local() {
    if (back_.waiting.empty()) return true;
    ssize_t sent =
        send(local_.get(), back_.waiting.data(), back_.waiting.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    back_.waiting.erase(0, static_cast<size_t>(sent));
    return true;
  }

  UniqueFd local_;
  PortConnection remote_;
  std::vector<char> buffer_ = std::vector<char>(kBufferBytes);
  Way out_;   // to the sandbox
  Way back_;  // from it
};

void carry(Client& client, const ForwardRequest& request, UniqueFd local) {
  auto remote = client.connect_port(request.sandbox, request.port);
  if (!remote) {
    fmt::print(stderr, "atoll: {}\n", explain(remote.error(), client.url()));
    return;
  }
  Carrier(std::move(local), std::move(*remote)).run();
}

Result<uint16_t> port_number(std::string_view text, bool may_be_zero) {
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  bool good = error == std::errc() && end == text.data() + text.size();
  if (good && (port != 0 || may_be_zero)) return port;
  return fail(ErrorCode::InvalidArgument, fmt::format("'{}' is no port", text));
}

}  // namespace

Result<ForwardRequest> parse_forward(const std::string& text) {
  std::string_view whole = text;
  size_t colon = whole.find(':');
  ForwardRequest request;
  ATOLL_ASSIGN(request.port,
               port_number(colon == whole.npos ? whole : whole.substr(colon + 1), false));
  request.local = request.port;
  if (colon != whole.npos) {
    ATOLL_ASSIGN(request.local, port_number(whole.substr(0, colon), true));
  }
  return request;
}

Result<int> forward(const Globals& globals, Client& client, const ForwardRequest& request) {
  ATOLL_ASSIGN(Sandbox sandbox, client.get(request.sandbox));
  ATOLL_ASSIGN(Listener listener, listen_locally(request.local));
  if (globals.json) {
    print_out(JsonObject()
                  .text("sandboxId", sandbox.id)
                  .text("address", "127.0.0.1")
                  .number("localPort", listener.port)
                  .number("port", request.port)
                  .take() +
              "\n");
  } else if (!globals.quiet) {
    print_out(fmt::format("127.0.0.1:{} is port {} of {}; Ctrl-C ends it\n", listener.port,
                          request.port, request.sandbox));
  }
  fflush(stdout);
  for (;;) {
    UniqueFd local(accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!local.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return fail_errno("accept");
    }
    // They end with the process, as the listener does.
    std::thread([&client, request, fd = std::move(local)]() mutable {
      carry(client, request, std::move(fd));
    }).detach();
  }
}

}  // namespace atl::cli
