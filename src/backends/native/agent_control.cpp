#include "backends/native/agent_control.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

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
  std::shared_ptr<AgentControl> control(new AgentControl(executor, std::move(link)));
  asio::co_spawn(
      executor, [control]() -> Task<void> { return control->read_loop(); }, asio::detached);
  co_return control;
}

// A request that does not fit into the socket's buffer goes out in pieces, and no other request
// may get between them.
Task<Result<void>> AgentControl::send(std::string bytes) {
  auto turn = sending_.is_locked() ? co_await sending_.lock() : sending_.lock_free();
  co_return co_await link_->write(std::move(bytes));
}

Task<void> AgentControl::read_loop() {
  auto keep = shared_from_this();
  for (;;) {
    auto frame = co_await link_->receive_any();
    if (!frame) break;
    if (frame->type == static_cast<uint16_t>(wire::AgentType::Failure)) {
      answer(frame->id, fail(agent_failure(*frame)));
    } else {
      answer(frame->id, RawReply{.type = frame->type, .payload = std::string(frame->payload)});
    }
    // Whoever waited for it goes first: the next look at the socket will mostly find nothing.
    co_await asio::post(asio::use_awaitable);
  }
  link_->close();
  fail_all(agent_gone());
}

}  // namespace atl::native
