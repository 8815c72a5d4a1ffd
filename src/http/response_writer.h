#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "atoll/task.h"
#include "base/result.h"
#include "http/message.h"
#include "http/websocket.h"

namespace atl::http {

class Socket;

// A connection that speaks another protocol from now on.
struct SwitchedConnection {
  Socket* socket = nullptr;  // valid until the handler returns
  std::string early;         // what came right behind the request
};

// Answers one request, with exactly one of send(), start() .. finish(), upgrade_websocket() or
// switch_protocols().
// Valid until the handler returns, on the server's thread. A handler that returns without an answer
// gets a 500 sent for it; one that returns between start() and finish() has its connection cut, so
// that the client cannot take the part for the whole. Every failure means the client is gone or
// too slow: stop working for it.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  // The whole response in one system call.
  virtual Task<Result<void>> send(Response response) = 0;
  // 200 with a JSON body, the common case.
  Task<Result<void>> send_json(std::string body, int status = 200);
  Task<Result<void>> send_error(Error error);

  // Sends the head at once. Without a length the body is chunked.
  virtual Task<Result<void>> start(int status, Headers headers,
                                   std::optional<uint64_t> content_length = std::nullopt) = 0;
  // Returns when the kernel has taken all of `bytes`, which is never copied: pass 64 KiB to 1 MiB.
  // Calls from several coroutines go out one after the other.
  virtual Task<Result<void>> write(std::string_view bytes) = 0;
  virtual Task<Result<void>> finish() = 0;

  virtual bool started() const = 0;
  // The request was HEAD: bodies are counted but not sent, so a handler may skip producing one.
  virtual bool head_only() const = 0;

  // The client going away while the handler works: as a task to wait for, and as a callback, which
  // is dropped when the handler returns. Both start watching once the request body has been read
  // to its end; until then the body's read fails instead. A client that half-closes counts as gone.
  virtual Task<void> closed() = 0;
  virtual void on_closed(std::function<void()> callback) = 0;
  virtual bool peer_closed() const = 0;

  // Completes the handshake, or answers 400 or 426 and fails.
  virtual Task<Result<std::shared_ptr<WebSocket>>> upgrade_websocket(WebSocketOptions options) = 0;
  // Answers 101 with these fields, which name the protocol; the bytes are the handler's then. The
  // request's body must have been read.
  virtual Task<Result<SwitchedConnection>> switch_protocols(Headers headers) = 0;
};

}  // namespace atl::http
