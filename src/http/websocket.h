#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/task.h"
#include "base/result.h"

namespace atl::http {

struct WebSocketMessage {
  bool binary = false;
  std::string data;
};

// RFC 6455 7.4.1.
enum class CloseCode : uint16_t {
  Normal = 1000,
  GoingAway = 1001,
  ProtocolError = 1002,
  UnsupportedData = 1003,
  NoStatus = 1005,
  BadPayload = 1007,
  PolicyViolation = 1008,
  TooBig = 1009,
  InternalError = 1011,
};

struct WebSocketOptions {
  using ChooseSubprotocol =
      std::function<std::optional<std::string>(const std::vector<std::string>& offered)>;

  WebSocketOptions() = default;

  size_t max_message_bytes = 1024 * 1024;
  // A silent peer is pinged at half this time and dropped after all of it.
  std::chrono::milliseconds idle_timeout{120'000};
  std::chrono::milliseconds close_timeout{5'000};
  // Pages of other hosts than the one asked that may open one (origin.h).
  std::vector<std::string> allowed_origins;
  // None chosen: no Sec-WebSocket-Protocol in the answer.
  ChooseSubprotocol choose_subprotocol;
};

// The server's end of a WebSocket. One receive() at a time; sends may come from any coroutine on
// the server's thread and go out in order. Pings are answered while a receive() is pending.
class WebSocket {
 public:
  virtual ~WebSocket() = default;

  // Fails with Cancelled after an orderly close, Unavailable when the connection broke, TooLarge
  // for a message over the limit.
  virtual Task<Result<WebSocketMessage>> receive() = 0;
  virtual Task<Result<void>> send_text(std::string_view data) = 0;
  virtual Task<Result<void>> send_binary(std::string_view data) = 0;
  virtual Task<void> close(CloseCode code, std::string reason) = 0;
  // Breaks the connection without ceremony; pending calls fail.
  virtual void abort() = 0;

  // What the peer's close frame said; NoStatus until then.
  virtual uint16_t close_code() const = 0;
  virtual const std::string& subprotocol() const = 0;
};

}  // namespace atl::http
