#include "http/sse_parser.h"

#include <utility>

namespace atl::http {

Result<void> SseParser::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    // A CRLF may be split between two reads.
    if (std::exchange(skip_lf_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    size_t end = bytes.find_first_of("\r\n");
    if (end == std::string_view::npos) {
      partial_.append(bytes);
      break;
    }
    skip_lf_ = bytes[end] == '\r';
    if (partial_.empty()) {
      take_line(bytes.substr(0, end));
    } else {
      partial_.append(bytes.substr(0, end));
      take_line(partial_);
      partial_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  if (partial_.size() + current_.data.size() > limit_) {
    return fail(ErrorCode::TooLarge, "server-sent event is too large");
  }
  return {};
}

std::optional<Event> SseParser::next() {
  if (ready_.empty()) return std::nullopt;
  Event event = std::move(ready_.front());
  ready_.pop_front();
  return event;
}

void SseParser::take_line(std::string_view line) {
  if (line.empty()) return dispatch();
  size_t colon = line.find(':');
  if (colon == 0) return;  // a comment
  std::string_view name = line.substr(0, colon);
  std::string_view value =
      colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "event") current_.event = value;
  if (name == "id") current_.id = value;
  if (name != "data") return;
  if (std::exchange(has_data_, true)) current_.data.push_back('\n');
  current_.data.append(value);
}

void SseParser::dispatch() {
  std::string last_id = current_.id;
  if (has_data_) ready_.push_back(std::move(current_));
  current_ = Event();
  current_.id = std::move(last_id);
  has_data_ = false;
}

}  // namespace atl::http
