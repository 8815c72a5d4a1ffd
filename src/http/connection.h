#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <memory>

#include "atoll/task.h"
#include "http/connection_writer.h"
#include "http/head_parser.h"
#include "http/input_buffer.h"
#include "http/router.h"
#include "http/server.h"
#include "http/socket.h"

namespace atl::http {

// One client: reads requests and has them answered, strictly one after the other.
class Connection {
 public:
  // The router and the options outlive it.
  Connection(boost::asio::any_io_executor executor, UniqueFd fd, Peer peer,
             DeadlineQueue& deadlines, const Router& router, const ServerOptions& options);

  // Until the client or the server ends it. Never throws but for cancellation of its own waits.
  Task<void> run();

  // No request after the present one; at once if there is none.
  void finish_soon();
  // Cuts the present request short.
  void abort();
  boost::asio::cancellation_signal& cancellation() { return cancellation_; }

 private:
  Task<bool> serve_one();
  Task<Parsed<std::optional<RequestHead>>> read_head();
  Parsed<std::optional<RequestHead>> take_head(HeadScanner& scanner);
  Task<void> answer(RequestHead* head, ConnectionWriter* writer);
  Task<void> call(const Handler* handler, Request* request, ConnectionWriter* writer);
  Task<bool> settle(RequestBody* body, ConnectionWriter* writer);
  Task<void> refuse(ProtocolError error);
  Task<void> close_gently();

  Socket socket_;
  InputBuffer input_;
  const Router& router_;
  const ServerOptions& options_;
  Peer peer_;
  HeadLimits limits_;
  bool first_ = true;
  bool finishing_ = false;
  bool aborted_ = false;
  ConnectionWriter* writer_ = nullptr;  // of the request being handled
  boost::asio::cancellation_signal cancellation_;
};

}  // namespace atl::http
