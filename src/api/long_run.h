// Work that takes a while: it goes on when those who asked for it have gone, and tells those who
// listen how far it is.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "atoll/task.h"
#include "base/result.h"
#include "http/message.h"
#include "http/response_writer.h"

namespace atl::api {

// Whether the client wants events on the way instead of one answer at the end.
bool wants_events(const http::Request& request);

class LongRun {
 public:
  using Work = std::function<Task<Result<std::string>>(LongRun&)>;  // the answer, as JSON
  static std::shared_ptr<LongRun> start(const boost::asio::any_io_executor& executor, Work work);

  // An event that another of the same name, not yet sent, is replaced by.
  void tell_state(std::string event, std::string data);
  // An event of which none is left out, unless the listener is far behind.
  void tell(std::string event, std::string data);

  // Writes events until the end, or the answer at the end.
  Task<Result<void>> answer(http::ResponseWriter& writer, bool with_events);

  explicit LongRun(const boost::asio::any_io_executor& executor) : changed_(executor) {}

 private:
  struct Event {
    std::string name;
    std::string data;
  };
  Task<void> wait();
  Task<Result<void>> stream(http::ResponseWriter& writer);

  std::deque<Event> news_;
  std::optional<Result<std::string>> result_;
  boost::asio::steady_timer changed_;
};

}  // namespace atl::api
