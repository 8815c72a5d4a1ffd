// What Beast's WebSocket runs on: a connection of ours, encrypted or not.
#pragma once

#include <sys/socket.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <utility>

#include "http/socket.h"

namespace atl::http {

class WebSocketTransport : public boost::asio::generic::stream_protocol::socket {
  using Base = boost::asio::generic::stream_protocol::socket;
  using ErrorCode = boost::system::error_code;

 public:
  WebSocketTransport(const boost::asio::any_io_executor& executor, Socket::Released released)
      : Base(executor, boost::asio::generic::stream_protocol(AF_UNIX, 0), released.fd.release()),
        tls_(std::move(released.tls)) {}
  WebSocketTransport(WebSocketTransport&&) = default;
  WebSocketTransport& operator=(WebSocketTransport&&) = delete;
  ~WebSocketTransport() = default;

  // As Beast calls them: with a handler.
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (!tls_) return Base::async_read_some(buffers, std::forward<Handler>(handler));
    start(ReadStep{first_of(buffers)}, handler);
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (!tls_) return Base::async_write_some(buffers, std::forward<Handler>(handler));
    start(WriteStep{parts_of(buffers)}, handler);
  }

  // While it can still be heard.
  void say_goodbye() {
    if (tls_) tls_->close_notify();
  }

 private:
  // One attempt: how many bytes went through, or none when it has to wait.
  struct ReadStep {
    boost::asio::mutable_buffer into;

    Result<std::optional<size_t>> operator()(TlsSession& tls) const {
      return tls.read_now({static_cast<char*>(into.data()), into.size()});
    }
    static TlsSession::Wait waits_for(TlsSession& tls) { return tls.read_waits_for(); }
    bool ends_at_zero() const { return into.size() > 0; }
  };
  struct WriteStep {
    WriteParts parts;

    Result<std::optional<size_t>> operator()(TlsSession& tls) {
      size_t before = size();
      ATOLL_ASSIGN(bool done, tls.write_now(parts));
      size_t sent = before - size();
      if (sent == 0 && !done) return std::optional<size_t>();
      return std::optional<size_t>(sent);
    }
    size_t size() const { return parts[0].size() + parts[1].size() + parts[2].size(); }
    static TlsSession::Wait waits_for(TlsSession& tls) { return tls.write_waits_for(); }
    bool ends_at_zero() const { return false; }
  };

  template <class Step>
  class Operation {
   public:
    Operation(WebSocketTransport& transport, Step step) : transport_(transport), step_(step) {}

    template <class Self>
    void operator()(Self& self, ErrorCode error = {}) {
      if (finished_) return self.complete(error_, bytes_);
      std::optional<size_t> bytes;
      if (!error) {
        auto result = step_(*transport_.tls_);
        if (!result) error = boost::asio::error::connection_reset;
        if (result) bytes = *result;
      }
      if (!error && !bytes) return wait(self);
      if (!error && *bytes == 0 && step_.ends_at_zero()) error = boost::asio::error::eof;
      if (waited_) return self.complete(error, bytes.value_or(0));
      // A handler never runs inside the call that it was passed to.
      finished_ = true;
      error_ = error;
      bytes_ = bytes.value_or(0);
      auto executor = transport_.get_executor();
      boost::asio::post(executor, std::move(self));
    }

   private:
    template <class Self>
    void wait(Self& self) {
      waited_ = true;
      bool reading = step_.waits_for(*transport_.tls_) == TlsSession::Wait::Readable;
      transport_.async_wait(reading ? wait_read : wait_write, std::move(self));
    }

    WebSocketTransport& transport_;
    Step step_;
    bool waited_ = false;
    bool finished_ = false;
    ErrorCode error_;
    size_t bytes_ = 0;
  };

  template <class Step, class Handler>
  void start(Step step, Handler& handler) {
    boost::asio::async_compose<Handler, void(ErrorCode, size_t)>(
        Operation<Step>(*this, std::move(step)), handler, *this);
  }

  template <class Buffers>
  static boost::asio::mutable_buffer first_of(const Buffers& buffers) {
    auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto at = boost::asio::buffer_sequence_begin(buffers); at != end; ++at) {
      boost::asio::mutable_buffer buffer(*at);
      if (buffer.size() > 0) return buffer;
    }
    return {};
  }
  template <class Buffers>
  static WriteParts parts_of(const Buffers& buffers) {
    WriteParts parts;
    size_t used = 0;
    auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto at = boost::asio::buffer_sequence_begin(buffers); at != end; ++at) {
      boost::asio::const_buffer buffer(*at);
      if (buffer.size() == 0) continue;
      if (used == parts.size()) break;
      parts[used++] = {static_cast<const char*>(buffer.data()), buffer.size()};
    }
    return parts;
  }

  std::unique_ptr<TlsSession> tls_;
};

// Ends the connection as soon as both close frames are out, as RFC 6455 7.1.1 asks of servers.
// Beast's own way would wait for the client to hang up, however long it takes.
template <class TeardownHandler>
void async_teardown(boost::beast::role_type, WebSocketTransport& transport,
                    TeardownHandler&& handler) {
  boost::system::error_code ignored;
  transport.say_goodbye();
  transport.shutdown(boost::asio::socket_base::shutdown_both, ignored);
  boost::asio::post(transport.get_executor(),
                    boost::beast::bind_front_handler(std::forward<TeardownHandler>(handler),
                                                     boost::system::error_code()));
}

}  // namespace atl::http
