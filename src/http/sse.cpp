#include "http/sse.h"

namespace atl::http {
namespace {

bool is_one_line(std::string_view text) {
  return text.find_first_of("\r\n") == std::string_view::npos;
}

}  // namespace

Result<std::string> format_event(std::string_view event, std::string_view data,
                                 std::optional<std::string_view> id) {
  if (!is_one_line(event) || !is_one_line(data) || (id && !is_one_line(*id))) {
    return fail(ErrorCode::Internal, "line end inside a server-sent event");
  }
  std::string out;
  out.reserve(event.size() + data.size() + (id ? id->size() : 0) + 32);
  if (id) out.append("id: ").append(*id).append("\n");
  out.append("event: ").append(event).append("\ndata: ").append(data).append("\n\n");
  return out;
}

Task<Result<void>> EventStream::start(Headers extra) {
  extra.set("Content-Type", "text/event-stream");
  extra.set("Cache-Control", "no-cache");
  extra.set("X-Accel-Buffering", "no");  // nginx would hold events back
  co_return co_await writer_.start(200, std::move(extra), std::nullopt);
}

Task<Result<void>> EventStream::send(std::string event, std::string data,
                                     std::optional<std::string> id) {
  ATOLL_CO_ASSIGN(std::string text, format_event(event, data, id));
  co_return co_await writer_.write(text);
}

Task<Result<void>> EventStream::heartbeat() { co_return co_await writer_.write(": heartbeat\n\n"); }

Task<Result<void>> EventStream::finish() { co_return co_await writer_.finish(); }

}  // namespace atl::http
