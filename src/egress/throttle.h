// A rate that is kept by waiting.
#pragma once

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "atoll/task.h"

namespace atl::egress {

class Throttle {
 public:
  using Clock = std::chrono::steady_clock;

  void set_rate(uint64_t per_second) { rate_ = per_second; }
  bool active() const { return rate_ != 0; }

  // Counts what has passed and waits until that is within the rate; a second's worth may come at
  // once.
  Task<void> pass(uint64_t amount) {
    if (rate_ == 0) co_return;
    auto now = Clock::now();
    paid_until_ = std::max(paid_until_, now - std::chrono::seconds(1));
    paid_until_ += std::chrono::nanoseconds(amount * 1'000'000'000 / rate_);
    if (paid_until_ <= now) co_return;
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, paid_until_);
    (void)co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }

 private:
  uint64_t rate_ = 0;
  Clock::time_point paid_until_{};
};

}  // namespace atl::egress
