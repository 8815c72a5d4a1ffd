// One epoll set and a clock: everything the agent waits for.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/unique_fd.h"

namespace atl::agent {

class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void on_ready(uint32_t events) = 0;
};

class EventLoop {
 public:
  EventLoop();

  void add(int fd, uint32_t events, Watcher* watcher);
  void modify(int fd, uint32_t events, Watcher* watcher);
  void remove(int fd, Watcher* watcher);
  // The object may be on the call stack or in the present batch of events: it is destroyed after.
  void destroy_later(std::unique_ptr<Watcher> watcher);

  // Waits at most until `deadline_ms` of the monotonic clock (0: for ever) and serves one batch.
  void run_once(uint64_t deadline_ms);
  int fd() const { return epoll_.get(); }

 private:
  static constexpr int kBatch = 32;
  UniqueFd epoll_;
  epoll_event batch_[kBatch];
  int batch_size_ = 0;
  std::vector<std::unique_ptr<Watcher>> doomed_;
};

uint64_t monotonic_ms();
uint64_t monotonic_us();
uint64_t wall_clock_ms();

}  // namespace atl::agent
