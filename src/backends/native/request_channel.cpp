#include "backends/native/request_channel.h"

#include <boost/asio/steady_timer.hpp>

namespace atl::native {

namespace asio = boost::asio;

Task<Result<RequestChannel::RawReply>> RequestChannel::exchange(uint32_t id, std::string bytes,
                                                                ReplyLimit limit) {
  auto waiting = std::make_shared<async::OneShot<Result<RawReply>>>();
  waiting_[id] = waiting;
  auto sent = co_await send(std::move(bytes));
  if (!sent) {
    waiting_.erase(id);
    co_return fail(std::move(sent).error());
  }
  if (!limit) co_return co_await waiting->wait();
  auto reply = co_await wait(std::move(waiting), *limit);
  waiting_.erase(id);  // it may have run out of time
  co_return reply;
}

Task<Result<RequestChannel::RawReply>> RequestChannel::wait(Waiting waiting,
                                                            std::chrono::milliseconds limit) {
  asio::steady_timer timer(co_await asio::this_coro::executor, limit);
  timer.async_wait([waiting, peer = peer_](boost::system::error_code error) {
    if (!error) waiting->set(fail(ErrorCode::Timeout, peer + " does not answer"));
  });
  co_return co_await waiting->wait();
}

void RequestChannel::answer(uint32_t id, Result<RawReply> reply) {
  auto waiting = waiting_.extract(id);
  if (waiting) waiting.mapped()->set(std::move(reply));
}

void RequestChannel::fail_all(const Error& error) {
  for (auto& [id, waiting] : std::exchange(waiting_, {})) waiting->set(fail(error));
}

}  // namespace atl::native
