// Client::websocket(): the handshake, apart so that only this file needs Beast's key arithmetic.
#include <boost/beast/websocket/detail/hybi13.hpp>

#include "http/client.h"
#include "http/client_connection.h"
#include "http/client_websocket.h"
#include "http/status.h"

namespace atl::http {
namespace {

namespace hybi = boost::beast::websocket::detail;

Result<void> check_answer(const ResponseHead& head, std::string_view key) {
  hybi::sec_ws_accept_type expected;
  hybi::make_sec_ws_accept(expected, {key.data(), key.size()});
  auto accept = head.headers.get("Sec-WebSocket-Accept");
  if (!accept || *accept != std::string_view(expected.data(), expected.size()) ||
      !head.headers.has_token("Upgrade", "websocket")) {
    return fail(ErrorCode::Internal, "the server botched the WebSocket handshake");
  }
  return {};
}

Error refusal(ClientConnection& connection, int status) {
  std::string body(64 * 1024, '\0');
  size_t used = 0;
  while (used < body.size()) {
    auto got = connection.read_body(std::span(body).subspan(used));
    if (!got || *got == 0) break;
    used += *got;
  }
  return error_from_response(status, std::string_view(body).substr(0, used));
}

}  // namespace

Result<ClientWebSocket> Client::websocket(std::string_view target, const Headers& headers,
                                          const std::vector<std::string>& subprotocols) {
  // A fresh one: a handshake that failed on a dead connection could not be told from a refusal.
  ATOLL_ASSIGN(auto connection, pool_->acquire(true));
  hybi::sec_ws_key_type key;
  hybi::make_sec_ws_key(key);
  std::string_view key_text(key.data(), key.size());
  Headers all = headers;
  all.set("Connection", "Upgrade");
  all.set("Upgrade", "websocket");
  all.set("Sec-WebSocket-Version", "13");
  all.set("Sec-WebSocket-Key", std::string(key_text));
  std::string offers;
  for (const std::string& name : subprotocols)
    offers.append(offers.empty() ? "" : ", ").append(name);
  if (!offers.empty()) all.set("Sec-WebSocket-Protocol", offers);

  RequestHeadOptions options;
  options.method = "GET";
  options.target = target;
  ATOLL_TRY(connection->send_head(options, all));
  ATOLL_ASSIGN(ResponseHead head, connection->read_head());
  if (head.status != 101) return fail(refusal(*connection, head.status));
  ATOLL_TRY(check_answer(head, key_text));
  std::string chosen(head.headers.get("Sec-WebSocket-Protocol").value_or(""));
  auto socket = std::make_unique<BlockingSocket>(std::move(connection->socket()));
  return ClientWebSocket(std::move(socket), connection->take_input(), std::move(chosen));
}

Result<UpgradedConnection> Client::upgrade(std::string_view target, const Headers& headers,
                                           std::string_view protocol) {
  ATOLL_ASSIGN(auto connection, pool_->acquire(true));
  Headers all = headers;
  all.set("Connection", "Upgrade");
  all.set("Upgrade", std::string(protocol));
  RequestHeadOptions options;
  options.method = "GET";
  options.target = target;
  ATOLL_TRY(connection->send_head(options, all));
  ATOLL_ASSIGN(ResponseHead head, connection->read_head());
  if (head.status != 101) return fail(refusal(*connection, head.status));
  if (!head.headers.has_token("Upgrade", protocol)) {
    return fail(ErrorCode::Internal, "the server chose another protocol");
  }
  auto socket = std::make_unique<BlockingSocket>(std::move(connection->socket()));
  return UpgradedConnection{std::move(socket), connection->take_input()};
}

}  // namespace atl::http
