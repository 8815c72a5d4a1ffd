#include "sandbox/event_log.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/scope_exit.h"
#include "sandbox/clock.h"

namespace atl::sandbox {

// Listeners that keep up are served from memory; the rest reads the database.
static constexpr size_t kRecent = 4096;

Result<void> EventLog::load() {
  ATOLL_ASSIGN(given_, store_.last_event());
  announced_ = given_;
  return {};
}

Event EventLog::make(std::string tenant, std::string sandbox, std::string type, std::string data) {
  return {.seq = ++given_,
          .at_ms = wall_clock_ms(),
          .tenant = std::move(tenant),
          .sandbox = std::move(sandbox),
          .type = std::move(type),
          .data = std::move(data)};
}

void EventLog::announce(const Event& event) {
  announced_ = std::max(announced_, event.seq);
  recent_.push_back(event);
  if (recent_.size() > kRecent) recent_.pop_front();
  for (auto* timer : waiting_) timer->cancel();
}

Task<Result<std::vector<Event>>> EventLog::after(int64_t seq, std::string sandbox, size_t limit) {
  if (seq >= announced_) co_return std::vector<Event>();
  bool in_memory = !recent_.empty() && recent_.front().seq <= seq + 1;
  if (!in_memory) co_return co_await store_.load_events(seq, std::move(sandbox), limit);
  auto first =
      std::upper_bound(recent_.begin(), recent_.end(), seq,
                       [](int64_t value, const Event& event) { return value < event.seq; });
  size_t count = std::min(limit, static_cast<size_t>(recent_.end() - first));
  co_return std::vector<Event>(first, first + static_cast<ptrdiff_t>(count));
}

Task<bool> Listener::wait(int64_t seq, std::chrono::milliseconds limit) {
  if (log_.announced_ > seq) co_return true;
  if (log_.stopped_) co_return false;
  timer_.expires_after(limit);
  log_.waiting_.insert(&timer_);
  ScopeExit leave([this] { log_.waiting_.erase(&timer_); });
  (void)co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  co_return log_.announced_ > seq;
}

Task<Result<void>> EventLog::forget_before(int64_t at_ms) {
  return store_.erase_events_before(at_ms);
}

void EventLog::stop() {
  stopped_ = true;
  for (auto* timer : waiting_) timer->cancel();
}

}  // namespace atl::sandbox
