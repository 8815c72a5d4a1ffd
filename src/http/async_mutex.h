#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "atoll/task.h"

namespace atl::http {

// Keeps coroutines of one thread from interleaving what they send. Uncontended it costs a flag.
class AsyncMutex {
 public:
  explicit AsyncMutex(boost::asio::any_io_executor executor);
  ~AsyncMutex();

  class [[nodiscard]] Guard {
   public:
    explicit Guard(AsyncMutex* mutex) : mutex_(mutex) {}
    Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Guard& operator=(Guard&&) = delete;
    ~Guard() {
      if (mutex_ != nullptr) mutex_->unlock();
    }

   private:
    AsyncMutex* mutex_;
  };

  Task<Guard> lock();
  bool is_locked() const { return locked_; }
  // Only where is_locked() is false.
  Guard lock_free() {
    locked_ = true;
    return Guard(this);
  }

 private:
  struct Waiters;
  void unlock();

  boost::asio::any_io_executor executor_;
  bool locked_ = false;
  std::unique_ptr<Waiters> waiters_;  // made at the first contention
};

}  // namespace atl::http
