#include "http/peer_watch.h"

#include <poll.h>

#include <utility>

namespace atl::http {

constexpr size_t kReadAhead = 16 * 1024;

void PeerWatch::subscribe(std::function<void()> callback) {
  if (stopped_) return;
  if (gone_) return callback();
  callbacks_.push_back(std::move(callback));
}

void PeerWatch::start() {
  if (std::exchange(started_, true) || stopped_) return;
  arm();
}

void PeerWatch::stop() {
  stopped_ = true;
  callbacks_.clear();
  if (started_) socket_->cancel();
}

void PeerWatch::fire() {
  gone_ = true;
  for (auto& callback : std::exchange(callbacks_, {})) callback();
}

void PeerWatch::arm() {
  socket_->notify_readable([self = shared_from_this()] {
    if (!self->stopped_) self->look();
  });
}

void PeerWatch::look() {
  pollfd polled{socket_->native_handle(), POLLIN | POLLRDHUP, 0};
  poll(&polled, 1, 0);
  if ((polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return fire();
  if ((polled.revents & POLLIN) != 0) {
    if (input_->size() >= kReadAhead) return;
    auto got = socket_->try_read(input_->prepare(kReadAhead));
    if (!got || *got == size_t{0}) return fire();
    if (*got) input_->commit(**got);
  }
  arm();
}

}  // namespace atl::http
