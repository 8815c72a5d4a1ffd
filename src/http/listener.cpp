#include "http/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/log.h"

namespace atl::http {

namespace asio = boost::asio;

// Established connections get their turn between batches of new ones.
constexpr int kBatch = 64;

struct Listener::State {
  State(const asio::any_io_executor& executor, int fd) : descriptor(executor, fd) {}
  asio::posix::stream_descriptor descriptor;
};

Listener::Listener(asio::any_io_executor executor, UniqueFd fd, OnConnection on_connection)
    : state_(std::make_unique<State>(executor, fd.release())),
      on_connection_(std::move(on_connection)),
      spare_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

Listener::~Listener() = default;

void Listener::start() { wait(); }

void Listener::close() {
  boost::system::error_code ignored;
  state_->descriptor.close(ignored);
}

void Listener::wait() {
  state_->descriptor.async_wait(
      asio::posix::stream_descriptor::wait_read,
      [self = shared_from_this()](const boost::system::error_code& error) {
        if (error || !self->state_->descriptor.is_open()) return;
        self->accept_waiting();
        if (self->state_->descriptor.is_open()) self->wait();
      });
}

void Listener::accept_waiting() {
  for (int i = 0; i < kBatch && state_->descriptor.is_open(); i++) {
    if (!accept_one()) return;
  }
}

bool Listener::accept_one() {
  UniqueFd accepted(::accept4(state_->descriptor.native_handle(), nullptr, nullptr,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (accepted.valid()) {
    on_connection_(std::move(accepted));
    return true;
  }
  if (errno == EMFILE || errno == ENFILE) {
    shed_one();
    return true;
  }
  // The client gave up while it was queued: the next one may be fine.
  return errno == ECONNABORTED || errno == EINTR;
}

void Listener::shed_one() {
  auto now = std::chrono::steady_clock::now();
  if (now - last_shed_ > std::chrono::seconds(1)) {
    log(LogLevel::Warning, "out of file descriptors, refusing connections");
    last_shed_ = now;
  }
  spare_.reset();
  UniqueFd(::accept4(state_->descriptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
  spare_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace atl::http
