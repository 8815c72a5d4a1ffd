#include "http/deadline.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>

namespace atl::http {

// The least time between two sweeps: with thousands of connections some deadline is always near.
constexpr auto kSweepSlack = std::chrono::milliseconds(50);

struct DeadlineQueue::State {
  explicit State(const boost::asio::any_io_executor& executor) : timer(executor) {}
  boost::asio::steady_timer timer;
  Clock::time_point armed = Clock::time_point::max();
  std::vector<Deadline*> deadlines;
};

DeadlineQueue::DeadlineQueue(boost::asio::any_io_executor executor)
    : state_(std::make_shared<State>(executor)) {}

DeadlineQueue::~DeadlineQueue() { state_->timer.cancel(); }

void DeadlineQueue::arm(const std::shared_ptr<State>& state, Clock::time_point when) {
  if (when >= state->armed) return;
  state->armed = when;
  state->timer.expires_at(when);
  state->timer.async_wait([weak = std::weak_ptr(state)](const boost::system::error_code& error) {
    auto alive = weak.lock();
    if (!error && alive) sweep(alive);
  });
}

void DeadlineQueue::sweep(const std::shared_ptr<State>& state) {
  state->armed = Clock::time_point::max();
  Clock::time_point now = Clock::now();
  Clock::time_point next = Clock::time_point::max();
  for (Deadline* deadline : state->deadlines) {
    if (deadline->when_ <= now) {
      deadline->clear();
      deadline->on_expiry_();
    }
    next = std::min(next, deadline->when_);
  }
  if (next != Clock::time_point::max()) arm(state, std::max(next, now + kSweepSlack));
}

Deadline::Deadline(DeadlineQueue& queue, std::function<void()> on_expiry)
    : state_(queue.state_), on_expiry_(std::move(on_expiry)), index_(state_->deadlines.size()) {
  state_->deadlines.push_back(this);
}

Deadline::~Deadline() {
  Deadline* last = state_->deadlines.back();
  last->index_ = index_;
  state_->deadlines[index_] = last;
  state_->deadlines.pop_back();
  // Nothing left to watch: an armed timer would keep the io_context running for its whole time.
  if (state_->deadlines.empty()) {
    state_->armed = Clock::time_point::max();
    state_->timer.cancel();
  }
}

void Deadline::set(Clock::time_point when) {
  when_ = when;
  DeadlineQueue::arm(state_, when);
}

}  // namespace atl::http
