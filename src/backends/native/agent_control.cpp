#include "backends/native/agent_control.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "async/with_deadline.h"

namespace atl::native {

namespace asio = boost::asio;

static constexpr std::chrono::seconds kGreeting{10};

Task<Result<std::shared_ptr<AgentControl>>> AgentControl::connect(
    asio::any_io_executor executor, std::string path, std::optional<wire::Configure> configure) {
  return async::with_deadline(greet(executor, std::move(path), std::move(configure)), kGreeting,
                              "the sandbox's agent does not answer");
}

Task<Result<std::shared_ptr<AgentControl>>> AgentControl::greet(
    asio::any_io_executor executor, std::string path, std::optional<wire::Configure> configure) {
  ATOLL_CO_ASSIGN(auto link, co_await AgentLink::connect(executor, std::move(path)));
  std::string greeting;
  wire::append_frame(greeting, 0, wire::ControlHello{});
  if (configure) wire::append_frame(greeting, 0, *configure);
  ATOLL_CO_TRY(co_await link->write(std::move(greeting)));
  ATOLL_CO_ASSIGN(auto ready, co_await link->expect<wire::ControlReady>());
  if (ready.version != 1) co_return fail(ErrorCode::Internal, "the agent is of another version");
  if (configure) ATOLL_CO_TRY(co_await link->expect<wire::Done>());
  std::shared_ptr<AgentControl> control(new AgentControl(std::move(link)));
  asio::co_spawn(
      executor, [control]() -> Task<void> { return control->read_loop(); }, asio::detached);
  co_return control;
}

Task<Result<AgentControl::RawReply>> AgentControl::exchange(uint32_t id, std::string bytes) {
  auto reply = std::make_shared<async::OneShot<Result<RawReply>>>();
  pending_[id] = reply;
  auto sent = co_await link_->write(std::move(bytes));
  if (!sent) {
    pending_.erase(id);
    co_return fail(std::move(sent).error());
  }
  co_return co_await reply->wait();
}

Task<void> AgentControl::read_loop() {
  auto keep = shared_from_this();
  for (;;) {
    auto frame = co_await link_->receive_any();
    if (!frame) break;
    auto it = pending_.find(frame->id);
    if (it == pending_.end()) continue;
    Pending reply = it->second;
    pending_.erase(it);
    if (frame->type == static_cast<uint16_t>(wire::AgentType::Failure)) {
      reply->set(fail(agent_failure(*frame)));
    } else {
      reply->set(RawReply{.type = frame->type, .payload = std::string(frame->payload)});
    }
  }
  link_->close();
  for (auto& [id, reply] : std::exchange(pending_, {})) {
    reply->set(fail(ErrorCode::Unavailable, "the sandbox has ended or its agent hung up"));
  }
}

}  // namespace atl::native
