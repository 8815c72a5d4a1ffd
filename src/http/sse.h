// Server-sent events, the server's side.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "atoll/task.h"
#include "base/result.h"
#include "http/response_writer.h"

namespace atl::http {

// One event as the wire has it: "id: ..\nevent: ..\ndata: ..\n\n". Fails when a part holds a line
// end, as data is one line of JSON here.
Result<std::string> format_event(std::string_view event, std::string_view data,
                                 std::optional<std::string_view> id = std::nullopt);

// Writes events to a response; each goes out in a single chunk and a single system call, so that a
// client which splits on reads sees whole events. Keep the writer alive.
class EventStream {
 public:
  explicit EventStream(ResponseWriter& writer) : writer_(writer) {}

  Task<Result<void>> start(Headers extra = Headers());
  Task<Result<void>> send(std::string event, std::string data,
                          std::optional<std::string> id = std::nullopt);
  // A comment line: keeps intermediaries from closing a quiet stream, and finds dead clients.
  Task<Result<void>> heartbeat();
  Task<Result<void>> finish();

 private:
  ResponseWriter& writer_;
};

}  // namespace atl::http
