#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "atoll/task.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "http/router.h"
#include "http/server_observer.h"
#include "http/tls_context.h"

namespace atl::http {

struct ServerOptions {
  ServerOptions() = default;

  size_t max_head_bytes = 16 * 1024;
  size_t max_target_bytes = 8 * 1024;
  // All connections, and those from one address; admission.h says what counts as one.
  size_t max_connections = 8192;
  size_t max_connections_per_address = 1024;
  // What a handler left of a request body is read and dropped up to this; beyond, the connection
  // is closed.
  size_t max_drain_bytes = 256 * 1024;
  // Bodies and answers that are in memory as a whole, of all requests together.
  size_t max_buffered_bytes = 512 * 1024 * 1024;

  // TLS handshakes under way; of more the oldest is given up, which a real client's never is.
  size_t max_handshakes = 256;

  std::chrono::milliseconds handshake_timeout{10'000};
  std::chrono::milliseconds head_timeout{10'000};  // from a head's first byte to its last
  std::chrono::milliseconds idle_timeout{75'000};  // between requests
  std::chrono::milliseconds body_timeout{60'000};  // the longest silence within a request body
  // A body's sender that is waited for sends at least so much in each such time, but for the first.
  size_t pace_bytes = 10 * 1024;
  std::chrono::milliseconds pace_window{10'000};
  std::chrono::milliseconds write_timeout{60'000};  // the longest a reader may take nothing
  std::chrono::milliseconds drain_timeout{5'000};   // for all that a handler left of a body

  std::shared_ptr<ServerObserver> observer;  // may be none
};

// An HTTP/1.1 server on one io_context thread, with a coroutine a connection. All members are
// called on that thread. Await stop() before destroying it: handlers may still be running.
//
// When all connections are taken, those that have waited longest for a request make room for new
// ones; a newcomer is turned away only where every one of them is being answered.
class Server {
 public:
  Server(boost::asio::any_io_executor executor, Router router,
         ServerOptions options = ServerOptions());
  ~Server();

  // Replaces a socket file that nobody listens on any more; removes its own when stopped.
  Result<void> listen_unix(std::string path, mode_t mode = 0600);
  // `address` is numeric or "localhost". Port 0 takes a free one; returns the port. With `tls` it
  // speaks HTTPS, here and below.
  Result<uint16_t> listen_tcp(std::string address, uint16_t port,
                              std::shared_ptr<TlsContext> tls = nullptr);
  // A stream socket that is already listening, such as one from the service manager.
  Result<void> listen_fd(UniqueFd fd, std::shared_ptr<TlsContext> tls = nullptr);
  // Serves one connection that somebody else accepted. Who is at its other end is for the caller to
  // say: one end of a socket pair would pass for a local client.
  void serve(UniqueFd connection, Peer peer, const TlsContext* tls = nullptr);

  // Accepts no more, closes idle connections, gives running requests until `grace`, then cuts them.
  Task<void> stop(std::chrono::milliseconds grace);

  size_t connection_count() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace atl::http
