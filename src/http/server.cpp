#include "http/server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <unordered_set>
#include <utility>
#include <vector>

#include "http/admission.h"
#include "http/connection.h"
#include "http/head_writer.h"
#include "http/listener.h"
#include "http/peer.h"
#include "http/socket_calls.h"
#include "http/status.h"

namespace atl::http {

namespace asio = boost::asio;

namespace {

constexpr size_t kEndedAtOnce = 64;  // looking for them means looking at all

// Sent without a Connection object, which is what there are too many of. Nor is a TLS handshake
// worth an answer that says no.
void turn_away(int fd, const Error& reason, const TlsContext* tls) {
  if (tls != nullptr) return;
  auto text = format_last_response(error_response(reason));
  if (!text) return;
  WriteParts parts{*text};
  [[maybe_unused]] auto ignored = send_now(fd, parts);
}

void make_ready(int fd) {
  // A descriptor from elsewhere may block; and small answers should not wait for more of them.
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // fails on Unix sockets, as it may
}

}  // namespace

class Server::Impl : public std::enable_shared_from_this<Server::Impl> {
 public:
  Impl(asio::any_io_executor executor, Router router, ServerOptions options)
      : executor_(std::move(executor)),
        router_(std::move(router)),
        options_(std::move(options)),
        memory_(options_.max_buffered_bytes),
        // Those that were told to end still hold their places for a moment.
        admission_(options_.max_connections + kEndedAtOnce, options_.max_connections_per_address),
        deadlines_(executor_),
        changed_(executor_, asio::steady_timer::time_point::max()) {}

  void listen(UniqueFd fd, std::shared_ptr<TlsContext> tls = nullptr) {
    auto on_connection = [weak = weak_from_this(), tls = std::move(tls)](UniqueFd accepted) {
      auto server = weak.lock();
      auto peer = peer_of(accepted.get());
      if (server && peer) server->serve(std::move(accepted), std::move(*peer), tls.get());
    };
    auto listener = std::make_shared<Listener>(executor_, std::move(fd), std::move(on_connection));
    listener->start();
    listeners_.push_back(std::move(listener));
  }

  void remember_path(std::string path, const UnixListener& listener) {
    paths_.push_back({std::move(path), listener.device, listener.inode});
  }

  void serve(UniqueFd fd, Peer peer, const TlsContext* tls) {
    if (stopping_) return turn_away(fd.get(), Error(ErrorCode::Unavailable, "stopping"), tls);
    bool full = connections_.size() + kEndedAtOnce >= admission_.room_for(peer) && !make_room();
    Result<Admission::Ticket> ticket =
        full ? Result<Admission::Ticket>(fail(ErrorCode::Unavailable, "too many connections"))
             : admission_.admit(peer);
    Peer::Kind kind = peer.kind;
    if (!ticket) {
      if (options_.observer) options_.observer->connection_refused(kind);
      return turn_away(fd.get(), ticket.error(), tls);
    }
    std::unique_ptr<TlsSession> session;
    if (tls != nullptr) {
      auto made = tls->accept(fd.get());
      if (!made) return;
      session = std::move(*made);
    }
    if (options_.observer) options_.observer->connection_opened(kind);
    make_ready(fd.get());
    Socket socket(executor_, std::move(fd), deadlines_, std::move(session));
    auto connection = std::make_shared<Connection>(std::move(socket), std::move(peer),
                                                   ConnectionContext{router_, options_, memory_});
    connections_.insert(connection);
    auto done = [self = shared_from_this(), connection, kind,
                 place = std::move(*ticket)](const std::exception_ptr&) {
      if (self->options_.observer) self->options_.observer->connection_closed(kind);
      self->connections_.erase(connection);
      self->changed_.cancel();
    };
    auto slot = connection->cancellation().slot();
    asio::co_spawn(executor_, tls != nullptr ? run_encrypted(connection) : connection->run(),
                   asio::bind_cancellation_slot(slot, std::move(done)));
  }

  void close_listeners() {
    stopping_ = true;
    for (auto& listener : listeners_) listener->close();
    listeners_.clear();
    for (const Path& path : paths_) {
      // Another server may have taken the path since.
      struct stat status {};
      if (::lstat(path.name.c_str(), &status) == 0 && status.st_dev == path.device &&
          status.st_ino == path.inode) {
        ::unlink(path.name.c_str());
      }
    }
    paths_.clear();
  }

  void finish_connections() {
    for (const auto& connection : connections_) connection->finish_soon();
  }
  void abort_connections() {
    // A copy: aborting may end connections at once.
    auto connections = connections_;
    for (const auto& connection : connections) connection->abort();
  }

  Task<void> wait_until_empty(asio::steady_timer::time_point deadline) {
    while (!connections_.empty() && asio::steady_timer::clock_type::now() < deadline) {
      changed_.expires_at(deadline);
      co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  }

  size_t connection_count() const { return connections_.size(); }

 private:
  Task<void> run_encrypted(std::shared_ptr<Connection> connection) {
    handshakes_.push_back(connection);
    if (handshakes_.size() > options_.max_handshakes) {
      auto oldest = handshakes_.front().lock();
      handshakes_.pop_front();
      if (oldest) oldest->abort();
    }
    bool ready = co_await connection->handshake();
    std::erase_if(handshakes_, [&](const std::weak_ptr<Connection>& other) {
      return other.expired() || other.lock() == connection;
    });
    if (ready) co_await connection->run();
  }

  struct Path {
    std::string name;
    dev_t device;
    ino_t inode;
  };

  // Ends the connections that have waited longest for a request. They are gone a moment later; each
  // makes room for one newcomer until then.
  bool make_room() {
    if (promised_ == 0) {
      using Waiting = std::pair<Socket::Clock::time_point, Connection*>;
      std::vector<Waiting> waiting;
      for (const auto& connection : connections_) {
        if (auto since = connection->waiting_since())
          waiting.emplace_back(*since, connection.get());
      }
      promised_ = std::min(kEndedAtOnce, waiting.size());
      std::partial_sort(waiting.begin(), waiting.begin() + static_cast<ptrdiff_t>(promised_),
                        waiting.end());
      for (size_t i = 0; i < promised_; i++) waiting[i].second->finish_soon();
    }
    if (promised_ == 0) return false;
    promised_--;
    return true;
  }

  asio::any_io_executor executor_;
  Router router_;
  ServerOptions options_;
  MemoryBudget memory_;
  Admission admission_;
  DeadlineQueue deadlines_;
  asio::steady_timer changed_;
  bool stopping_ = false;
  size_t promised_ = 0;  // connections ended to make room, whose room nobody has taken yet
  std::vector<std::shared_ptr<Listener>> listeners_;
  std::vector<Path> paths_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  std::deque<std::weak_ptr<Connection>> handshakes_;  // under way, the oldest first
};

Server::Server(asio::any_io_executor executor, Router router, ServerOptions options)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(router), std::move(options))) {}

Server::~Server() {
  impl_->close_listeners();
  impl_->abort_connections();
}

Result<void> Server::listen_unix(std::string path, mode_t mode) {
  ATOLL_ASSIGN(UnixListener listener, listen_on_path(path, mode));
  impl_->remember_path(std::move(path), listener);
  impl_->listen(std::move(listener.fd));
  return {};
}

Result<uint16_t> Server::listen_tcp(std::string address, uint16_t port,
                                    std::shared_ptr<TlsContext> tls) {
  ATOLL_ASSIGN(UniqueFd fd, listen_on_address(address, port));
  ATOLL_ASSIGN(uint16_t bound, bound_port(fd.get()));
  impl_->listen(std::move(fd), std::move(tls));
  return bound;
}

Result<void> Server::listen_fd(UniqueFd fd, std::shared_ptr<TlsContext> tls) {
  int listening = 0;
  socklen_t length = sizeof(listening);
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0) {
    return fail_errno("getsockopt SO_ACCEPTCONN");
  }
  if (listening == 0) return fail(ErrorCode::InvalidArgument, "the socket is not listening");
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  impl_->listen(std::move(fd), std::move(tls));
  return {};
}

void Server::serve(UniqueFd connection, Peer peer, const TlsContext* tls) {
  impl_->serve(std::move(connection), std::move(peer), tls);
}

Task<void> Server::stop(std::chrono::milliseconds grace) {
  auto impl = impl_;
  impl->close_listeners();
  impl->finish_connections();
  auto now = asio::steady_timer::clock_type::now();
  co_await impl->wait_until_empty(now + grace);
  impl->abort_connections();
  // Handlers that hear the cancellation need a moment to unwind.
  co_await impl->wait_until_empty(asio::steady_timer::clock_type::now() + std::chrono::seconds(5));
}

size_t Server::connection_count() const { return impl_->connection_count(); }

}  // namespace atl::http
