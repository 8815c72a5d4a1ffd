// Requests to an agent, many at once over one connection.
#pragma once

#include <memory>

#include "backends/native/agent_link.h"
#include "backends/native/request_channel.h"
#include "http/async_mutex.h"

namespace atl::native {

class AgentControl : public RequestChannel, public std::enable_shared_from_this<AgentControl> {
 public:
  // Connects and greets; with `configure` the first request goes out with the greeting, and its
  // success is part of this one's.
  static Task<Result<std::shared_ptr<AgentControl>>> connect(
      boost::asio::any_io_executor executor, std::string path,
      std::optional<wire::Configure> configure = std::nullopt);

  bool alive() const { return link_->is_open(); }
  void close() { link_->close(); }

 private:
  static Task<Result<std::shared_ptr<AgentControl>>> greet(
      boost::asio::any_io_executor executor, std::string path,
      std::optional<wire::Configure> configure);
  AgentControl(boost::asio::any_io_executor executor, std::unique_ptr<AgentLink> link)
      : RequestChannel("the sandbox's agent"), link_(std::move(link)), sending_(executor) {}
  Task<Result<void>> send(std::string bytes) override;
  Task<void> read_loop();

  std::unique_ptr<AgentLink> link_;
  http::AsyncMutex sending_;
};

}  // namespace atl::native
