#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "http/blocking_socket.h"
#include "http/chunked.h"
#include "http/client.h"
#include "http/head_parser.h"
#include "http/head_writer.h"
#include "http/input_buffer.h"

namespace atl::http {

// One request at a time over one connection, in order: send_head, write_body .., finish_body,
// read_head, read_body until 0.
class ClientConnection {
 public:
  ClientConnection(BlockingSocket socket, std::string authority);

  // Sends the first of the body along, in the same system call.
  Result<void> send_head(RequestHeadOptions options, const Headers& headers,
                         std::string_view body = {});
  Result<void> write_body(std::string_view bytes);
  Result<void> finish_body();

  Result<ResponseHead> read_head();
  Result<size_t> read_body(std::span<char> into);

  bool body_complete() const;
  // May another request follow?
  bool reusable() const;
  // Did anything of the present response arrive?
  bool answered() const { return answered_; }
  bool was_used() const { return was_used_; }
  void mark_used() { was_used_ = true; }
  bool pending() const { return !input_.empty() || socket_.has_buffered(); }

  BlockingSocket& socket() { return socket_; }
  const BlockingSocket& socket() const { return socket_; }
  std::string take_input();

 private:
  Result<size_t> fill();
  void choose_framing(const ResponseHead& head);
  Result<size_t> read_plain(std::span<char> into, uint64_t limit);

  BlockingSocket socket_;
  std::string authority_;
  InputBuffer input_;
  std::string method_;
  BodyKind request_body_ = BodyKind::None;
  uint64_t request_left_ = 0;
  bool request_sent_ = false;
  bool was_used_ = false;
  bool answered_ = false;
  bool keep_alive_ = false;
  BodyKind response_body_ = BodyKind::None;
  uint64_t response_left_ = 0;
  bool response_ended_ = false;
  ChunkedDecoder chunks_;
};

// The idle connections of a Client.
class ClientPool {
 public:
  ClientPool(Endpoint endpoint, ClientOptions options, std::shared_ptr<TlsClientContext> tls)
      : endpoint_(std::move(endpoint)), options_(std::move(options)), tls_(std::move(tls)) {}

  // A kept connection that is not known to be dead, else a new one.
  Result<std::unique_ptr<ClientConnection>> acquire(bool fresh = false);
  void release(std::unique_ptr<ClientConnection> connection);

 private:
  Endpoint endpoint_;
  ClientOptions options_;
  std::shared_ptr<TlsClientContext> tls_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ClientConnection>> idle_;
};

}  // namespace atl::http
