#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::http {

class BlockingSocket;

// The client's end of a WebSocket; from Client::websocket(). Pings are answered inside receive().
// Not for use by two threads at once.
class ClientWebSocket {
 public:
  struct Message {
    bool binary = false;
    std::string data;
  };

  ClientWebSocket(std::unique_ptr<BlockingSocket> socket, std::string read_ahead,
                  std::string subprotocol);
  ClientWebSocket(ClientWebSocket&&) noexcept;
  ClientWebSocket& operator=(ClientWebSocket&&) noexcept;
  ~ClientWebSocket();

  Result<void> send_text(std::string_view data);
  Result<void> send_binary(std::string_view data);
  Result<void> ping(std::string_view data = {});
  // Fails with Cancelled once the server has closed, Timeout when nothing came in time; zero waits
  // for ever.
  Result<Message> receive(std::chrono::milliseconds timeout = std::chrono::milliseconds(0));
  // For use after poll(): none when no whole message is there yet.
  Result<std::optional<Message>> try_receive();
  // Sends a close frame; the server's answer shows in receive().
  Result<void> close(uint16_t code = 1000, std::string_view reason = {});

  int fd() const;
  // Bytes were read ahead: call try_receive() before the next poll().
  bool pending() const;
  uint16_t close_code() const;
  const std::string& close_reason() const;
  const std::string& subprotocol() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace atl::http
