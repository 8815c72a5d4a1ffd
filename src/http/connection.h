#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <memory>
#include <optional>

#include "atoll/task.h"
#include "http/connection_writer.h"
#include "http/head_parser.h"
#include "http/input_buffer.h"
#include "http/memory_budget.h"
#include "http/router.h"
#include "http/server.h"
#include "http/socket.h"

namespace atl::http {

// What all connections of a server share; outlives them.
struct ConnectionContext {
  const Router& router;
  const ServerOptions& options;
  MemoryBudget& memory;
};

// One client: reads requests and has them answered, strictly one after the other.
class Connection {
 public:
  Connection(Socket socket, Peer peer, const ConnectionContext& context);

  // Where it is encrypted, before run(): false when it came to nothing.
  Task<bool> handshake();
  // Until the client or the server ends it. Never throws but for cancellation of its own waits.
  Task<void> run();

  // No request after the present one; at once if there is none.
  void finish_soon();
  // Cuts the present request short.
  void abort();
  // Since when it has waited for a request, or for the rest of one's head; none while one is
  // being answered.
  std::optional<Socket::Clock::time_point> waiting_since() const {
    return finishing_ ? std::nullopt : waiting_since_;
  }
  boost::asio::cancellation_signal& cancellation() { return cancellation_; }

 private:
  // A request and its answer. Kept here and not in a coroutine's frame, which would be too large
  // for Asio to use again.
  struct Exchange {
    Exchange(RequestHead parsed, Connection& connection);
    RequestHead head;
    RequestBody body;
    ConnectionWriter writer;
    std::string_view pattern;             // of the route, once found
    Socket::Clock::time_point started{};  // where somebody observes
  };

  Task<bool> serve_one();
  Task<Parsed<bool>> read_head();
  Parsed<bool> take_head(HeadScanner& scanner);
  Task<void> answer();
  Response refusal(const Result<Router::Match>& match) const;
  Task<bool> settle();
  bool may_go_on() const;
  void report() const;
  Task<void> refuse(ProtocolError error);
  Task<void> close_gently();

  Socket socket_;
  InputBuffer input_;
  const Router& router_;
  const ServerOptions& options_;
  MemoryBudget& memory_;
  Peer peer_;
  HeadLimits limits_;
  bool first_ = true;
  bool finishing_ = false;
  bool aborted_ = false;
  std::optional<Socket::Clock::time_point> waiting_since_;
  std::optional<Exchange> exchange_;  // while a request is being handled
  boost::asio::cancellation_signal cancellation_;
};

}  // namespace atl::http
