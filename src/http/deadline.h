// Deadlines that cost nothing to move: a stored time each, and one timer for all of them.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace atl::http {

class Deadline;

// The timer is armed for the earliest deadline it knew of. Most deadlines are moved or cleared
// before they pass, so it fires a few times a minute, however many requests go by.
class DeadlineQueue {
 public:
  using Clock = std::chrono::steady_clock;

  explicit DeadlineQueue(boost::asio::any_io_executor executor);
  ~DeadlineQueue();

 private:
  friend class Deadline;
  struct State;
  static void arm(const std::shared_ptr<State>& state, Clock::time_point when);
  static void sweep(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

class Deadline {
 public:
  using Clock = DeadlineQueue::Clock;

  // `on_expiry` runs on the queue's thread, at most once for each set(); it must not destroy
  // deadlines.
  Deadline(DeadlineQueue& queue, std::function<void()> on_expiry);
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline();

  void set(Clock::time_point when);
  void clear() { when_ = Clock::time_point::max(); }

 private:
  friend class DeadlineQueue;
  std::shared_ptr<DeadlineQueue::State> state_;
  std::function<void()> on_expiry_;
  Clock::time_point when_ = Clock::time_point::max();
  size_t index_ = 0;  // in the queue's list
};

}  // namespace atl::http
