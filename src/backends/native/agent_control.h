// Requests to an agent, many at once over one connection.
#pragma once

#include <map>
#include <memory>

#include "async/one_shot.h"
#include "backends/native/agent_link.h"

namespace atl::native {

class AgentControl : public std::enable_shared_from_this<AgentControl> {
 public:
  // Connects and greets; with `configure` the first request goes out with the greeting, and its
  // success is part of this one's.
  static Task<Result<std::shared_ptr<AgentControl>>> connect(
      boost::asio::any_io_executor executor, std::string path,
      std::optional<wire::Configure> configure = std::nullopt);

  template <class Reply, class Request>
  Task<Result<Reply>> call(Request request) {
    std::string bytes;
    uint32_t id = next_id_++;
    wire::append_frame(bytes, id, request);
    auto raw = co_await exchange(id, std::move(bytes));
    if (!raw) co_return fail(std::move(raw).error());
    if (raw->type != static_cast<uint16_t>(Reply::kType)) {
      co_return fail(ErrorCode::Internal, "unexpected reply from the sandbox's agent");
    }
    co_return wire::decode<Reply>(raw->payload);
  }

  bool alive() const { return link_->is_open(); }
  void close() { link_->close(); }

 private:
  struct RawReply {
    uint16_t type = 0;
    std::string payload;
  };
  using Pending = std::shared_ptr<async::OneShot<Result<RawReply>>>;

  static Task<Result<std::shared_ptr<AgentControl>>> greet(
      boost::asio::any_io_executor executor, std::string path,
      std::optional<wire::Configure> configure);
  explicit AgentControl(std::unique_ptr<AgentLink> link) : link_(std::move(link)) {}
  Task<Result<RawReply>> exchange(uint32_t id, std::string bytes);
  Task<void> read_loop();

  std::unique_ptr<AgentLink> link_;
  std::map<uint32_t, Pending> pending_;
  uint32_t next_id_ = 1;
};

}  // namespace atl::native
