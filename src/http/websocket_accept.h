#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "atoll/task.h"
#include "base/result.h"
#include "http/message.h"
#include "http/socket.h"
#include "http/websocket.h"

namespace atl::http {

bool is_websocket_upgrade(const Request& request);

// Answers the handshake on `socket`. `request` must stay valid until it completes.
Task<Result<std::shared_ptr<WebSocket>>> accept_websocket(boost::asio::any_io_executor executor,
                                                          Socket::Released socket,
                                                          const Request* request,
                                                          WebSocketOptions options);

}  // namespace atl::http
