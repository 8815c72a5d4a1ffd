#include "http/async_mutex.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <deque>

namespace atl::http {

namespace asio = boost::asio;

// A timer that never fires is Asio's lightest event: cancelling it wakes the one who waits.
struct Waiter {
  explicit Waiter(const asio::any_io_executor& executor)
      : event(executor, asio::steady_timer::time_point::max()) {}
  asio::steady_timer event;
  bool granted = false;
};

struct AsyncMutex::Waiters {
  std::deque<std::shared_ptr<Waiter>> queue;
};

AsyncMutex::AsyncMutex(asio::any_io_executor executor) : executor_(std::move(executor)) {}
AsyncMutex::~AsyncMutex() = default;

Task<AsyncMutex::Guard> AsyncMutex::lock() {
  if (!locked_) co_return lock_free();
  if (!waiters_) waiters_ = std::make_unique<Waiters>();
  auto waiter = std::make_shared<Waiter>(executor_);
  waiters_->queue.push_back(waiter);
  co_await waiter->event.async_wait(asio::as_tuple(asio::use_awaitable));
  if (waiter->granted) co_return Guard(this);
  std::erase(waiters_->queue, waiter);
  throw boost::system::system_error(asio::error::operation_aborted);
}

// Hands over rather than frees, so that a newcomer cannot overtake those who wait.
void AsyncMutex::unlock() {
  if (!waiters_ || waiters_->queue.empty()) {
    locked_ = false;
    return;
  }
  auto next = std::move(waiters_->queue.front());
  waiters_->queue.pop_front();
  next->granted = true;
  next->event.cancel();
}

}  // namespace atl::http
