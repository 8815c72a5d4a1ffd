// What a client that streams events costs the server in memory of its own; the kernel's sockets
// come on top.
#include <stdio.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "forked_server.h"
#include "http/blocking_socket.h"
#include "http/listener.h"
#include "http_load.h"

namespace atl::bench {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(20'000);

// Where clients connect to, and for https whom they believe.
struct Target {
  http::Endpoint endpoint;
  std::shared_ptr<http::TlsClientContext> tls;
};

// Connected, and past its first event.
Result<http::BlockingSocket> open_stream(const Target& target) {
  ATOLL_ASSIGN(http::BlockingSocket socket,
               http::BlockingSocket::connect(target.endpoint, kPatience, target.tls.get()));
  socket.set_timeout(kPatience);
  ATOLL_TRY(socket.write({HttpLoadOptions::get("/events")}));
  std::string received;
  while (received.find("\n\n\r\n") == received.npos) {
    char block[4096];
    ATOLL_ASSIGN(size_t got, socket.read(block));
    if (got == 0) return fail(ErrorCode::Unavailable, "the stream ended");
    received.append(block, got);
  }
  return socket;
}

Result<void> measure(const ForkedServer& server, const Target& target, unsigned clients) {
  std::vector<http::BlockingSocket> streams;
  streams.reserve(clients);
  // What the first few cost is code and tables.
  constexpr unsigned kFirst = 50;
  double before = 0;
  for (unsigned i = 0; i < clients + kFirst; i++) {
    if (i == kFirst) before = server.anonymous_kib();
    ATOLL_ASSIGN(http::BlockingSocket stream, open_stream(target));
    streams.push_back(std::move(stream));
  }
  double after = server.anonymous_kib();
  printf("%s: streams %u   KiB each %.2f   (server %.0f -> %.0f KiB)\n",
         target.tls ? "https" : "http", clients, (after - before) / clients, before, after);
  return {};
}

Result<void> measure_plain(unsigned clients) {
  ATOLL_ASSIGN(ForkedServer server, ForkedServer::start(serve_simple, 0));
  Target target;
  ATOLL_ASSIGN(target.endpoint, http::Endpoint::parse(server.endpoint()));
  return measure(server, target, clients);
}

Result<void> measure_tls(unsigned clients, const http::TlsOptions& options,
                         const std::string& ca_file) {
  ATOLL_ASSIGN(UniqueFd listener, http::listen_on_address("127.0.0.1", 0));
  ATOLL_ASSIGN(uint16_t port, http::bound_port(listener.get()));
  auto serve = [&](const std::string& path) {
    serve_simple_tls(path, listener.release(), options);
  };
  ATOLL_ASSIGN(ForkedServer server, ForkedServer::start(serve, 0));
  Target target;
  ATOLL_ASSIGN(target.endpoint, http::Endpoint::parse("https://localhost:" + std::to_string(port)));
  ATOLL_ASSIGN(target.tls, http::TlsClientContext::create(ca_file));
  return measure(server, target, clients);
}

}  // namespace
}  // namespace atl::bench

// http_memory [CLIENTS [CERTIFICATE KEY CA]]: the files, for "localhost", add a round over HTTPS.
int main(int argc, char** argv) {
  using namespace atl;
  unsigned clients = argc > 1 ? static_cast<unsigned>(atoi(argv[1])) : 5000;
  auto done = bench::measure_plain(clients);
  if (done && argc > 4) {
    http::TlsOptions options;
    options.certificate_file = argv[2];
    options.key_file = argv[3];
    done = bench::measure_tls(clients, options, argv[4]);
  }
  if (done) return 0;
  fprintf(stderr, "http_memory: %s\n", done.error().message().c_str());
  return 1;
}
