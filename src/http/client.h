// A blocking HTTP/1.1 client for the command line and for programs without an event loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/headers.h"
#include "http/sse_parser.h"

namespace atl::http {

class ClientConnection;
class ClientPool;
class ClientWebSocket;
class BlockingSocket;

struct ClientOptions {
  ClientOptions() = default;

  std::chrono::milliseconds connect_timeout{10'000};
  // The longest silence while reading or writing; zero waits for ever.
  std::chrono::milliseconds io_timeout{60'000};
  // For https: PEM certificates to believe instead of the system's. Empty: $ATOLL_CA_FILE, if set.
  std::string ca_file;
};

struct ClientResponse {
  int status = 0;
  Headers headers;
  std::string body;

  bool ok() const { return status >= 200 && status < 300; }
};

// A response whose body is still coming. Reading it to its end gives the connection back; dropping
// it earlier closes the connection.
class ResponseStream {
 public:
  ResponseStream(ResponseStream&&) noexcept;
  ResponseStream& operator=(ResponseStream&&) noexcept;
  ~ResponseStream();

  int status() const { return status_; }
  const Headers& headers() const { return headers_; }
  bool ok() const { return status_ >= 200 && status_ < 300; }
  // What is there, at least a byte, straight into `into`; 0 is the end.
  Result<size_t> read(std::span<char> into);
  Result<std::string> read_all(size_t limit = 64 * 1024 * 1024);
  // The next server-sent event; none at the end of the stream.
  Result<std::optional<Event>> next_event();
  // For this response alone; zero waits for ever.
  void set_timeout(std::chrono::milliseconds timeout);
  // To poll beside other descriptors; readable with nothing pending() means bytes or the end.
  int fd() const;
  bool pending() const;

 private:
  friend class Client;
  friend class RequestStream;
  ResponseStream(std::unique_ptr<ClientConnection> connection, std::shared_ptr<ClientPool> pool);
  Result<void> read_head();
  void give_back_if_done();

  std::unique_ptr<ClientConnection> connection_;  // until the body's end
  std::shared_ptr<ClientPool> pool_;
  int status_ = 0;
  Headers headers_;
  SseParser events_;
};

// A request whose body is pushed piece by piece.
class RequestStream {
 public:
  RequestStream(RequestStream&&) noexcept;
  RequestStream& operator=(RequestStream&&) noexcept;
  ~RequestStream();

  Result<void> write(std::string_view bytes);
  // Ends the body and waits for the response's head. Also right after a failed write(): a server
  // that refuses a body answers before it is all sent.
  Result<ResponseStream> finish();

 private:
  friend class Client;
  RequestStream(std::unique_ptr<ClientConnection> connection, std::shared_ptr<ClientPool> pool);

  std::unique_ptr<ClientConnection> connection_;
  std::shared_ptr<ClientPool> pool_;
  bool broken_ = false;
};

// A connection that speaks another protocol after a request.
struct UpgradedConnection {
  std::unique_ptr<BlockingSocket> socket;
  std::string read_ahead;
};

// Connects to "unix:/path", "http://host:port" or "https://host:port", whose certificate must be
// trusted and name the host. Safe to share between threads: each call has a
// connection to itself, from a pool of idle ones. A request that is safe to repeat is tried once
// more when a kept connection turns out to be dead.
class Client {
 public:
  using Options = ClientOptions;
  // Fills the buffer and returns how much, 0 at the end.
  using BodySource = std::function<Result<size_t>(std::span<char>)>;

  static Result<Client> create(std::string_view endpoint, ClientOptions options = ClientOptions());

  // Whole bodies both ways. A status that is no success is a response, not an Error.
  Result<ClientResponse> request(std::string_view method, std::string_view target,
                                 const Headers& headers = Headers(), std::string_view body = {});
  // Whole request, streamed response.
  Result<ResponseStream> open(std::string_view method, std::string_view target,
                              const Headers& headers = Headers(), std::string_view body = {});
  // Streamed request: with a length, or chunked without.
  Result<RequestStream> start(std::string_view method, std::string_view target,
                              const Headers& headers, std::optional<uint64_t> length);
  // Streamed request, pulled from `source`.
  Result<ResponseStream> upload(std::string_view method, std::string_view target,
                                const Headers& headers, std::optional<uint64_t> length,
                                const BodySource& source);
  Result<ClientWebSocket> websocket(std::string_view target, const Headers& headers = Headers(),
                                    const std::vector<std::string>& subprotocols = {});
  // Asks for the protocol by its name.
  Result<UpgradedConnection> upgrade(std::string_view target, const Headers& headers,
                                     std::string_view protocol);

 private:
  explicit Client(std::shared_ptr<ClientPool> pool) : pool_(std::move(pool)) {}
  Result<ResponseStream> attempt(std::unique_ptr<ClientConnection> connection,
                                 std::string_view method, std::string_view target,
                                 const Headers& headers, std::string_view body, bool& repeatable);
  std::shared_ptr<ClientPool> pool_;
};

}  // namespace atl::http
