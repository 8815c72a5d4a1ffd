// Server-sent events, the client's side: bytes in, events out, no input or output of its own.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::http {

struct Event {
  std::string event = "message";
  std::string data;
  std::string id;
};

class SseParser {
 public:
  // An event larger than this fails, as its end may never come.
  explicit SseParser(size_t max_event_bytes = 16 * 1024 * 1024) : limit_(max_event_bytes) {}

  Result<void> feed(std::string_view bytes);
  std::optional<Event> next();
  bool has_next() const { return !ready_.empty(); }

 private:
  void take_line(std::string_view line);
  void dispatch();

  size_t limit_;
  std::string partial_;
  bool skip_lf_ = false;
  bool has_data_ = false;
  Event current_;
  std::deque<Event> ready_;
};

}  // namespace atl::http
