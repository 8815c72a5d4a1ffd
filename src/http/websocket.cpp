// The one file that knows Beast's WebSocket.
#include "http/websocket.h"

#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/error.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "http/async_mutex.h"
#include "http/websocket_accept.h"
#include "http/websocket_transport.h"

namespace atl::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace ws = boost::beast::websocket;
using UpgradeRequest = beast::http::request<beast::http::empty_body>;

// Without permessage-deflate: it costs memory a connection and buys nothing on a Unix socket.
using Stream = ws::stream<WebSocketTransport, false>;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

UpgradeRequest to_beast(const Request& request) {
  UpgradeRequest out;
  out.method_string(request.method);
  out.target(request.target);
  out.version(10 + request.minor_version);
  for (const Field& field : request.headers) out.insert(field.name, field.value);
  return out;
}

std::vector<std::string> offered_subprotocols(const Headers& headers) {
  std::vector<std::string> offered;
  for (const Field& field : headers) {
    if (!equals_ignoring_case(field.name, "Sec-WebSocket-Protocol")) continue;
    for (std::string_view name : split_list(field.value)) offered.emplace_back(name);
  }
  return offered;
}

class BeastWebSocket final : public WebSocket {
 public:
  BeastWebSocket(WebSocketTransport socket, const WebSocketOptions& options)
      : stream_(std::move(socket)), sending_(stream_.get_executor()) {
    ws::stream_base::timeout timeout{};
    timeout.handshake_timeout = options.close_timeout;  // Beast uses it for closing as well
    timeout.idle_timeout = options.idle_timeout;
    timeout.keep_alive_pings = true;
    stream_.set_option(timeout);
    stream_.read_message_max(options.max_message_bytes);
    stream_.auto_fragment(false);
  }

  void choose(std::string subprotocol) {
    subprotocol_ = std::move(subprotocol);
    stream_.set_option(ws::stream_base::decorator([this](ws::response_type& response) {
      if (!subprotocol_.empty()) {
        response.set(beast::http::field::sec_websocket_protocol, subprotocol_);
      }
    }));
  }

  Task<Result<void>> accept(UpgradeRequest request) {
    auto [error] = co_await stream_.async_accept(request, kAwait);
    co_return check(error);
  }

  Task<Result<WebSocketMessage>> receive() override {
    WebSocketMessage message;
    auto buffer = asio::dynamic_buffer(message.data);
    auto [error, size] = co_await stream_.async_read(buffer, kAwait);
    ATOLL_CO_TRY(check(error));
    message.binary = stream_.got_binary();
    message.data.resize(size);
    co_return message;
  }

  Task<Result<void>> send_text(std::string_view data) override { return send(data, false); }
  Task<Result<void>> send_binary(std::string_view data) override { return send(data, true); }

  Task<void> close(CloseCode code, std::string reason) override {
    auto guard = co_await sending_.lock();
    reason.resize(std::min<size_t>(reason.size(), 120));  // a control frame holds 123 bytes
    ws::close_reason why(static_cast<ws::close_code>(code), reason);
    co_await stream_.async_close(why, kAwait);
  }

  void abort() override {
    int fd = beast::get_lowest_layer(stream_).native_handle();
    if (fd >= 0) ::shutdown(fd, SHUT_RDWR);
  }

  uint16_t close_code() const override {
    uint16_t code = stream_.reason().code;
    return code == 0 ? static_cast<uint16_t>(CloseCode::NoStatus) : code;
  }
  const std::string& subprotocol() const override { return subprotocol_; }

 private:
  Task<Result<void>> send(std::string_view data, bool binary) {
    auto guard = co_await sending_.lock();
    stream_.binary(binary);
    auto [error, sent] =
        co_await stream_.async_write(asio::buffer(data.data(), data.size()), kAwait);
    co_return check(error);
  }

  static Result<void> check(const beast::error_code& error) {
    if (!error) return {};
    if (error == ws::error::closed) return fail(ErrorCode::Cancelled, "the WebSocket is closed");
    if (error == asio::error::operation_aborted) return fail(ErrorCode::Cancelled, "cancelled");
    if (error == ws::error::message_too_big || error == ws::error::buffer_overflow) {
      return fail(ErrorCode::TooLarge, "the WebSocket message is too large");
    }
    if (error == beast::error::timeout) return fail(ErrorCode::Timeout, "the peer is silent");
    return fail(ErrorCode::Unavailable, "WebSocket: " + error.message());
  }

  Stream stream_;
  AsyncMutex sending_;
  std::string subprotocol_;
};

}  // namespace

bool is_websocket_upgrade(const Request& request) { return ws::is_upgrade(to_beast(request)); }

Task<Result<std::shared_ptr<WebSocket>>> accept_websocket(asio::any_io_executor executor,
                                                          Socket::Released socket,
                                                          const Request* request,
                                                          WebSocketOptions options) {
  WebSocketTransport stream(executor, std::move(socket));
  auto websocket = std::make_shared<BeastWebSocket>(std::move(stream), options);
  if (options.choose_subprotocol) {
    websocket->choose(
        options.choose_subprotocol(offered_subprotocols(request->headers)).value_or(""));
  }
  ATOLL_CO_TRY(co_await websocket->accept(to_beast(*request)));
  co_return websocket;
}

}  // namespace atl::http
