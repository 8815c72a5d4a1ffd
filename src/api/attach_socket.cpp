#include "api/attach_socket.h"

#include <boost/json/serialize.hpp>

#include "api/exec_body.h"
#include "api/shapes.h"

namespace atl::api {

namespace json = boost::json;

Task<void> AttachSocket::run(std::unique_ptr<ProcessStream> stream, Greeting greeting) {
  if (greeting == Greeting::InputOffset) {
    json::object offset{{"type", "input"}, {"bytes", stream->input_bytes()}};
    (void)co_await socket().send_text(json::serialize(offset));
  }
  co_await pump(std::move(stream));
}

Task<Result<void>> AttachSocket::send_event(const OutputEvent& event) {
  switch (event.kind) {
    case OutputEvent::Kind::Data:
      frame_.assign(1, static_cast<char>(event.stream));
      frame_.append(event.data);
      co_return co_await socket().send_binary(frame_);
    case OutputEvent::Kind::Lost: {
      json::object lost{{"type", "lost"}, {"stream", name_of(event.stream)}, {"bytes", event.lost}};
      co_return co_await socket().send_text(json::serialize(lost));
    }
    case OutputEvent::Kind::Exited: {
      json::object end{{"type", "exit"}, {"process", process_json(event.process)}};
      co_return co_await socket().send_text(json::serialize(end));
    }
  }
  co_return Result<void>();
}

Task<Result<void>> AttachSocket::on_binary(std::string data) {
  if (data.empty() || data[0] != 0) {
    co_return fail(ErrorCode::InvalidArgument,
                   "a binary frame starts with byte 0 (standard input)");
  }
  data.erase(0, 1);
  co_return co_await stream().write_input(std::move(data));
}

Task<Result<void>> AttachSocket::on_text(const std::string& type, http::JsonObjectReader& fields) {
  if (type == "eof") {
    ATOLL_CO_TRY(fields.finish());
    co_return co_await stream().end_input();
  }
  if (type == "signal") {
    ATOLL_CO_ASSIGN(std::string name, fields.require_string("signal"));
    ATOLL_CO_TRY(fields.finish());
    ATOLL_CO_ASSIGN(int signal, parse_signal(name));
    co_return co_await session_->signal(pid_, signal, true);
  }
  co_return unknown_type(type);
}

}  // namespace atl::api
