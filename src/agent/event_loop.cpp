#include "agent/event_loop.h"

#include <stdlib.h>
#include <time.h>

namespace atl::agent {

static uint64_t read_clock_us(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

uint64_t monotonic_us() { return read_clock_us(CLOCK_MONOTONIC); }
uint64_t monotonic_ms() { return monotonic_us() / 1000; }
uint64_t wall_clock_ms() { return read_clock_us(CLOCK_REALTIME) / 1000; }

EventLoop::EventLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.valid()) abort();
}

void EventLoop::add(int fd, uint32_t events, Watcher* watcher) {
  epoll_event event{.events = events, .data = {.ptr = watcher}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void EventLoop::modify(int fd, uint32_t events, Watcher* watcher) {
  epoll_event event{.events = events, .data = {.ptr = watcher}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::remove(int fd, Watcher* watcher) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  for (int i = 0; i < batch_size_; i++) {
    if (batch_[i].data.ptr == watcher) batch_[i].data.ptr = nullptr;
  }
}

void EventLoop::destroy_later(std::unique_ptr<Watcher> watcher) {
  doomed_.push_back(std::move(watcher));
}

void EventLoop::run_once(uint64_t deadline_ms) {
  int timeout = -1;
  if (deadline_ms != 0) {
    uint64_t now = monotonic_ms();
    timeout = deadline_ms <= now ? 0 : static_cast<int>(deadline_ms - now);
  }
  batch_size_ = epoll_wait(epoll_.get(), batch_, kBatch, timeout);
  for (int i = 0; i < batch_size_; i++) {
    auto* watcher = static_cast<Watcher*>(batch_[i].data.ptr);
    if (watcher != nullptr) watcher->on_ready(batch_[i].events);
  }
  batch_size_ = 0;
  doomed_.clear();
}

}  // namespace atl::agent
