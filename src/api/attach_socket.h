// A WebSocket on one side, a process on the other.
#pragma once

#include <memory>

#include "atoll/sandbox_session.h"
#include "http/websocket.h"

namespace atl::api {

http::WebSocketOptions attach_socket_options();

class AttachSocket : public std::enable_shared_from_this<AttachSocket> {
 public:
  AttachSocket(std::shared_ptr<http::WebSocket> socket, std::unique_ptr<ProcessStream> stream,
               std::shared_ptr<SandboxSession> session, int32_t pid)
      : socket_(std::move(socket)),
        stream_(std::move(stream)),
        session_(std::move(session)),
        pid_(pid) {}

  enum class Greeting { None, InputOffset };
  // Until the process ends or the client goes; the process lives on.
  Task<void> run(Greeting greeting = Greeting::None);

 private:
  Task<void> pump_input();
  Task<Result<void>> pump_output();
  Task<Result<void>> handle_text(std::string text);

  std::shared_ptr<http::WebSocket> socket_;
  std::unique_ptr<ProcessStream> stream_;
  std::shared_ptr<SandboxSession> session_;
  int32_t pid_;
};

}  // namespace atl::api
