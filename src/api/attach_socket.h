// A process's input and output over one WebSocket.
#pragma once

#include "api/process_socket.h"

namespace atl::api {

class AttachSocket : public ProcessSocket {
 public:
  AttachSocket(std::shared_ptr<http::WebSocket> socket, std::shared_ptr<SandboxSession> session,
               int32_t pid)
      : ProcessSocket(std::move(socket)), session_(std::move(session)), pid_(pid) {}

  enum class Greeting { None, InputOffset };
  // Until the process ends or the client goes; the process lives on.
  Task<void> run(std::unique_ptr<ProcessStream> stream, Greeting greeting = Greeting::None);

 private:
  Task<Result<void>> send_event(const OutputEvent& event) override;
  Task<Result<void>> on_binary(std::string data) override;
  Task<Result<void>> on_text(const std::string& type, http::JsonObjectReader& fields) override;

  std::shared_ptr<SandboxSession> session_;
  int32_t pid_;
  std::string frame_;  // kept for its memory
};

}  // namespace atl::api
