// A value that one coroutine waits for and somebody else sets, on the same thread.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "atoll/task.h"

namespace atl::async {

template <class T>
class OneShot {
 public:
  // The waiter resumes from the event loop, never inside set().
  void set(T value) {
    if (value_) return;
    value_ = std::move(value);
    if (resume_) std::exchange(resume_, nullptr)();
  }

  Task<T> wait() {
    if (!value_) {
      auto executor = co_await boost::asio::this_coro::executor;
      auto initiate = [this, executor](auto handler) {
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        resume_ = [shared, executor] { boost::asio::post(executor, [shared] { (*shared)(); }); };
      };
      co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>&, void()>(
          initiate, boost::asio::use_awaitable);
    }
    co_return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  std::function<void()> resume_;
};

}  // namespace atl::async
