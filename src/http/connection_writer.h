#pragma once

#include <memory>

#include "http/async_mutex.h"
#include "http/head_writer.h"
#include "http/peer_watch.h"
#include "http/request_body.h"
#include "http/response_writer.h"
#include "http/server.h"
#include "http/socket.h"

namespace atl::http {

// What the writer needs of its connection; all of it outlives the request.
struct WriterContext {
  Socket& socket;
  InputBuffer& input;
  RequestBody& body;
  const Request& request;
  const ServerOptions& options;
};

// Answers the request at the front of a connection.
class ConnectionWriter final : public ResponseWriter {
 public:
  ConnectionWriter(WriterContext context, bool keep_alive);
  ~ConnectionWriter() override;

  Task<Result<void>> send(Response response) override;
  Task<Result<void>> start(int status, Headers headers,
                           std::optional<uint64_t> content_length) override;
  Task<Result<void>> write(std::string_view bytes) override;
  Task<Result<void>> finish() override;
  bool started() const override { return phase_ != Phase::Fresh; }
  bool head_only() const override { return context_.request.method == "HEAD"; }

  Task<void> closed() override;
  void on_closed(std::function<void()> callback) override;
  bool peer_closed() const override { return watch_ && watch_->gone(); }

  Task<Result<std::shared_ptr<WebSocket>>> upgrade_websocket(WebSocketOptions options) override;
  Task<Result<SwitchedConnection>> switch_protocols(Headers headers) override;

  // For the connection, once the handler has returned.
  bool finished() const { return phase_ == Phase::Done; }
  bool switched() const { return phase_ == Phase::Upgraded && websocket_ == nullptr; }
  bool keep_alive() const { return keep_alive_; }
  int status() const { return status_; }
  uint64_t body_bytes() const { return body_bytes_; }
  const std::shared_ptr<WebSocket>& websocket() const { return websocket_; }
  void stop_watching();
  // For the server's shutdown: wakes a handler that waits for closed().
  void abandon();

 private:
  enum class Phase { Fresh, Streaming, Done, Failed, Upgraded };

  Result<std::string> make_head(int status, const Headers& headers, BodyKind body, uint64_t length);
  Task<Result<void>> push(WriteParts parts);
  Result<void> count_bytes(uint64_t bytes);
  PeerWatch& watch();
  void release_input();

  WriterContext context_;
  bool keep_alive_;
  Phase phase_ = Phase::Fresh;
  BodyKind body_kind_ = BodyKind::None;
  int status_ = 0;  // once its head was handed over
  uint64_t length_left_ = 0;
  uint64_t body_bytes_ = 0;
  AsyncMutex writing_;
  std::shared_ptr<PeerWatch> watch_;
  std::shared_ptr<WebSocket> websocket_;
};

}  // namespace atl::http
