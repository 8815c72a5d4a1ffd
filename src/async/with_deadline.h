// Waits for a task no longer than a time. The task itself goes on in the background when the time
// is up; what it then returns is dropped.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>

#include "async/one_shot.h"
#include "atoll/result.h"

namespace atl::async {

template <class T>
Task<Result<T>> with_deadline(Task<Result<T>> task, std::chrono::milliseconds limit,
                              std::string on_timeout) {
  auto executor = co_await boost::asio::this_coro::executor;
  auto outcome = std::make_shared<OneShot<Result<T>>>();
  auto timer = std::make_shared<boost::asio::steady_timer>(executor, limit);
  timer->async_wait([outcome, timer, on_timeout](boost::system::error_code error) {
    if (!error) outcome->set(fail(ErrorCode::Timeout, on_timeout));
  });
  boost::asio::co_spawn(executor, std::move(task),
                        [outcome, timer](std::exception_ptr thrown, Result<T> value) {
                          if (thrown) value = fail(ErrorCode::Internal, "unexpected failure");
                          outcome->set(std::move(value));
                          timer->cancel();
                        });
  co_return co_await outcome->wait();
}

}  // namespace atl::async
