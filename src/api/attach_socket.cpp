#include "api/attach_socket.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/json/serialize.hpp>

#include "api/exec_body.h"
#include "api/shapes.h"
#include "http/json.h"

namespace atl::api {

namespace json = boost::json;

http::WebSocketOptions attach_socket_options() {
  http::WebSocketOptions options;
  options.max_message_bytes = 1u << 20;
  return options;
}

Task<void> AttachSocket::run(Greeting greeting) {
  auto executor = co_await boost::asio::this_coro::executor;
  auto self = shared_from_this();
  if (greeting == Greeting::InputOffset) {
    json::object offset{{"type", "input"}, {"bytes", stream_->input_bytes()}};
    (void)co_await socket_->send_text(json::serialize(offset));
  }
  boost::asio::co_spawn(
      executor, [self]() -> Task<void> { return self->pump_input(); }, boost::asio::detached);
  auto done = co_await pump_output();
  if (done) {
    co_await socket_->close(http::CloseCode::Normal, "the process has ended");
  } else {
    socket_->abort();
  }
  stream_->cancel();
}

Task<Result<void>> AttachSocket::pump_output() {
  std::string frame;
  for (;;) {
    ATOLL_CO_ASSIGN(OutputEvent event, co_await stream_->next());
    switch (event.kind) {
      case OutputEvent::Kind::Data:
        frame.assign(1, static_cast<char>(event.stream));
        frame.append(event.data);
        ATOLL_CO_TRY(co_await socket_->send_binary(frame));
        break;
      case OutputEvent::Kind::Lost: {
        json::object lost{{"type", "lost"},
                          {"stream", event.stream == Stream::Stderr ? "stderr" : "stdout"},
                          {"bytes", event.lost}};
        ATOLL_CO_TRY(co_await socket_->send_text(json::serialize(lost)));
        break;
      }
      case OutputEvent::Kind::Exited: {
        json::object end{{"type", "exit"}, {"process", process_json(event.process)}};
        co_return co_await socket_->send_text(json::serialize(end));
      }
    }
  }
}

Task<void> AttachSocket::pump_input() {
  for (;;) {
    auto message = co_await socket_->receive();
    if (!message) break;
    Result<void> handled;
    if (!message->binary) {
      handled = co_await handle_text(std::move(message->data));
    } else if (!message->data.empty() && message->data[0] == 0) {
      message->data.erase(0, 1);
      handled = co_await stream_->write_input(std::move(message->data));
    } else {
      handled =
          fail(ErrorCode::InvalidArgument, "a binary frame starts with byte 0 (standard input)");
    }
    if (!handled) {
      json::object error{{"type", "error"}, {"message", handled.error().message()}};
      if (!co_await socket_->send_text(json::serialize(error))) break;
    }
  }
  // The client is gone: the output pump must not wait for a process that may run for days.
  stream_->cancel();
}

Task<Result<void>> AttachSocket::handle_text(std::string text) {
  ATOLL_CO_ASSIGN(auto document, http::JsonDocument::parse(text, 64u << 10));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(std::string type, reader.require_string("type"));
  if (type == "eof") {
    ATOLL_CO_TRY(reader.finish());
    co_return co_await stream_->end_input();
  }
  if (type == "resize") {
    ATOLL_CO_ASSIGN(int64_t cols, reader.require_integer("cols", 1, 10000));
    ATOLL_CO_ASSIGN(int64_t rows, reader.require_integer("rows", 1, 10000));
    ATOLL_CO_TRY(reader.finish());
    co_return co_await stream_->resize(static_cast<uint16_t>(cols), static_cast<uint16_t>(rows));
  }
  if (type == "signal") {
    ATOLL_CO_ASSIGN(std::string name, reader.require_string("signal"));
    ATOLL_CO_TRY(reader.finish());
    ATOLL_CO_ASSIGN(int signal, parse_signal(name));
    co_return co_await session_->signal(pid_, signal, true);
  }
  co_return fail(
      Error(ErrorCode::InvalidArgument, "unknown type '" + type + "'").with_field("type"));
}

}  // namespace atl::api
