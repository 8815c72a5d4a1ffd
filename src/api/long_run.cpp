#include "api/long_run.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "http/sse.h"
#include "http/status.h"

namespace atl::api {

namespace asio = boost::asio;
namespace json = boost::json;

static constexpr std::chrono::seconds kHeartbeat{15};
static constexpr size_t kMaxBehind = 1000;

bool wants_events(const http::Request& request) {
  auto accept = request.headers.get("accept");
  return accept && accept->find("text/event-stream") != accept->npos;
}

std::shared_ptr<LongRun> LongRun::start(const asio::any_io_executor& executor, Work work) {
  auto run = std::make_shared<LongRun>(executor);
  auto go = [run, work = std::move(work)]() -> Task<void> {
    run->result_ = co_await work(*run);
    run->changed_.cancel();
  };
  asio::co_spawn(executor, std::move(go), asio::detached);
  return run;
}

void LongRun::tell_state(std::string event, std::string data) {
  std::erase_if(news_, [&](const Event& old) { return old.name == event; });
  tell(std::move(event), std::move(data));
}

void LongRun::tell(std::string event, std::string data) {
  if (news_.size() >= kMaxBehind) news_.pop_front();
  news_.push_back({std::move(event), std::move(data)});
  changed_.cancel();
}

// Until something has changed or the time is up.
Task<void> LongRun::wait() {
  if (!news_.empty() || result_) co_return;
  changed_.expires_after(kHeartbeat);
  (void)co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
}

Task<Result<void>> LongRun::stream(http::ResponseWriter& writer) {
  http::EventStream out(writer);
  ATOLL_CO_TRY(co_await out.start());
  while (!result_ || !news_.empty()) {
    co_await wait();
    if (news_.empty() && !result_) ATOLL_CO_TRY(co_await out.heartbeat());
    while (!news_.empty()) {
      Event event = std::move(news_.front());
      news_.pop_front();
      ATOLL_CO_TRY(co_await out.send(std::move(event.name), std::move(event.data)));
    }
  }
  if (*result_) {
    ATOLL_CO_TRY(co_await out.send("complete", **result_));
  } else {
    json::object error{{"code", http::wire_code(result_->error().code())},
                       {"message", result_->error().message()}};
    ATOLL_CO_TRY(co_await out.send("error", json::serialize(error)));
  }
  co_return co_await out.finish();
}

Task<Result<void>> LongRun::answer(http::ResponseWriter& writer, bool with_events) {
  if (with_events) co_return co_await stream(writer);
  while (!result_) {
    news_.clear();
    co_await wait();
  }
  if (!*result_) co_return fail(result_->error());
  co_return co_await writer.send_json(**result_, 201);
}

}  // namespace atl::api
