// What a client that streams events costs the server in memory of its own; the kernel's sockets
// come on top.
#include <stdio.h>
#include <stdlib.h>

#include <vector>

#include "forked_server.h"
#include "http/blocking_socket.h"
#include "http_load.h"

namespace atl::bench {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(20'000);

// Connected, and past its first event.
Result<http::BlockingSocket> open_stream(const ForkedServer& server) {
  ATOLL_ASSIGN(http::Endpoint endpoint, http::Endpoint::parse(server.endpoint()));
  ATOLL_ASSIGN(http::BlockingSocket socket, http::BlockingSocket::connect(endpoint, kPatience));
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

Result<void> run(unsigned clients) {
  ATOLL_ASSIGN(ForkedServer server, ForkedServer::start(serve_simple, 0));
  std::vector<http::BlockingSocket> streams;
  streams.reserve(clients);
  // What the first few cost is code and tables.
  constexpr unsigned kFirst = 50;
  double before = 0;
  for (unsigned i = 0; i < clients + kFirst; i++) {
    if (i == kFirst) before = server.anonymous_kib();
    ATOLL_ASSIGN(http::BlockingSocket stream, open_stream(server));
    streams.push_back(std::move(stream));
  }
  double after = server.anonymous_kib();
  printf("streams %u   KiB each %.2f   (server %.0f -> %.0f KiB)\n", clients,
         (after - before) / clients, before, after);
  return {};
}

}  // namespace
}  // namespace atl::bench

int main(int argc, char** argv) {
  auto done = atl::bench::run(argc > 1 ? static_cast<unsigned>(atoi(argv[1])) : 5000);
  if (done) return 0;
  fprintf(stderr, "http_memory: %s\n", done.error().message().c_str());
  return 1;
}
