#include "api/process_socket.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/json/serialize.hpp>

namespace atl::api {

namespace json = boost::json;

static constexpr size_t kMaxText = 1u << 20;

http::WebSocketOptions websocket_options(const ServiceSettings& settings) {
  http::WebSocketOptions options;
  options.allowed_origins = {settings.base_url, settings.allowed_origin};
  options.choose_subprotocol =
      [](const std::vector<std::string>& offered) -> std::optional<std::string> {
    if (offered.empty()) return std::nullopt;
    for (const std::string& one : offered) {
      if (!one.starts_with("bearer.")) return one;
    }
    return offered.front();
  };
  return options;
}

Task<void> ProcessSocket::pump(std::unique_ptr<ProcessStream> stream) {
  stream_ = std::move(stream);
  auto self = shared_from_this();
  boost::asio::co_spawn(
      co_await boost::asio::this_coro::executor,
      [self]() -> Task<void> { return self->pump_input(); }, boost::asio::detached);
  if (co_await pump_output()) {
    co_await socket_->close(http::CloseCode::Normal, "the process has ended");
  } else {
    socket_->abort();
  }
  stream_->cancel();
}

Task<Result<void>> ProcessSocket::pump_output() {
  for (bool ended = false; !ended;) {
    ATOLL_CO_ASSIGN(OutputEvent event, co_await stream_->next());
    ended = event.kind == OutputEvent::Kind::Exited;
    ATOLL_CO_TRY(co_await send_event(event));
  }
  co_return Result<void>();
}

Task<void> ProcessSocket::pump_input() {
  for (;;) {
    auto message = co_await socket_->receive();
    if (!message) break;
    auto handled = co_await handle(std::move(*message));
    if (!handled && !co_await send_error(handled.error())) break;
  }
  // The client is gone: the output pump must not wait for a process that may run for days.
  stream_->cancel();
}

Task<Result<void>> ProcessSocket::handle(http::WebSocketMessage message) {
  if (message.binary) co_return co_await on_binary(std::move(message.data));
  ATOLL_CO_ASSIGN(auto document, http::JsonDocument::parse(message.data, kMaxText));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader fields(*object);
  ATOLL_CO_ASSIGN(std::string type, fields.require_string("type"));
  if (type != "resize") co_return co_await on_text(type, fields);
  ATOLL_CO_ASSIGN(int64_t cols, fields.require_integer("cols", 1, 10000));
  ATOLL_CO_ASSIGN(int64_t rows, fields.require_integer("rows", 1, 10000));
  ATOLL_CO_TRY(fields.finish());
  co_return co_await stream_->resize(static_cast<uint16_t>(cols), static_cast<uint16_t>(rows));
}

tl::unexpected<Error> ProcessSocket::unknown_type(const std::string& type) {
  return fail(Error(ErrorCode::InvalidArgument, "unknown type '" + type + "'").with_field("type"));
}

Task<Result<void>> ProcessSocket::send_error(const Error& error) {
  json::object frame{{"type", "error"}, {"message", error.message()}};
  co_return co_await socket_->send_text(json::serialize(frame));
}

}  // namespace atl::api
