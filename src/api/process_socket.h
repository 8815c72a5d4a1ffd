// A WebSocket on one side, a process on the other. What the frames look like is the subclass's; the
// two loops, what ends them and how mistakes are told to the client are here.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/service.h"
#include "atoll/sandbox_session.h"
#include "http/json.h"
#include "http/websocket.h"

namespace atl::api {

// A browser that offers subprotocols hangs up unless one is chosen: the client's own where it
// offers one beside the bearer, else the bearer, which only its sender gets to see.
http::WebSocketOptions websocket_options(const ServiceSettings& settings);

class ProcessSocket : public std::enable_shared_from_this<ProcessSocket> {
 public:
  virtual ~ProcessSocket() = default;

 protected:
  explicit ProcessSocket(std::shared_ptr<http::WebSocket> socket) : socket_(std::move(socket)) {}

  // Until the process ends or the client goes; the process lives on.
  Task<void> pump(std::unique_ptr<ProcessStream> stream);
  Task<Result<void>> send_error(const Error& error);

  // What the process wrote, lost or ended with; after its end nothing more comes.
  virtual Task<Result<void>> send_event(const OutputEvent& event) = 0;
  virtual Task<Result<void>> on_binary(std::string data) = 0;
  // A text frame of a type that is not common to all.
  virtual Task<Result<void>> on_text(const std::string& type, http::JsonObjectReader& fields) = 0;
  static tl::unexpected<Error> unknown_type(const std::string& type);

  http::WebSocket& socket() { return *socket_; }
  ProcessStream& stream() { return *stream_; }

 private:
  Task<void> pump_input();
  Task<Result<void>> pump_output();
  Task<Result<void>> handle(http::WebSocketMessage message);

  std::shared_ptr<http::WebSocket> socket_;
  std::unique_ptr<ProcessStream> stream_;
};

}  // namespace atl::api
