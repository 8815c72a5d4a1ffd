// What has happened, in order, for whoever listens now or comes back within a day. An event is told
// once it is in the database, so a listener never hears of what a crash could undo.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "atoll/task.h"
#include "store/store.h"

namespace atl::sandbox {

using Event = store::EventRow;

class EventLog {
 public:
  EventLog(boost::asio::any_io_executor executor, store::Store& store)
      : executor_(std::move(executor)), store_(store) {}

  // Goes on counting where an earlier server stopped. Call once, before anything else.
  Result<void> load();

  // An event with the next number; the caller writes it and then announces it. Numbers are given
  // and written in one order.
  Event make(std::string tenant, std::string sandbox, std::string type, std::string data);
  void announce(const Event& event);

  int64_t newest() const { return announced_; }
  // Events after `seq`, oldest first, at most `limit`; `sandbox` says whose are wanted (empty:
  // all), but others may be among them.
  Task<Result<std::vector<Event>>> after(int64_t seq, std::string sandbox, size_t limit);

  Task<Result<void>> forget_before(int64_t at_ms);
  // Ends all waiting.
  void stop();
  bool stopped() const { return stopped_; }

 private:
  friend class Listener;

  boost::asio::any_io_executor executor_;
  store::Store& store_;
  int64_t given_ = 0;      // the last number handed out
  int64_t announced_ = 0;  // the last event told
  std::deque<Event> recent_;
  std::set<boost::asio::steady_timer*> waiting_;
  bool stopped_ = false;
};

// One who waits for the next event.
class Listener {
 public:
  explicit Listener(EventLog& log) : log_(log), timer_(log.executor_) {}
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Until there is an event after `seq`, but no longer than `limit`; false when there is none.
  Task<bool> wait(int64_t seq, std::chrono::milliseconds limit);
  // Ends the present wait.
  void wake() { timer_.cancel(); }

 private:
  EventLog& log_;
  boost::asio::steady_timer timer_;
};

}  // namespace atl::sandbox
