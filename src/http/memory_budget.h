// What requests keep in memory beyond a little, counted for the whole server: when many are large
// at once, some are refused instead of all of them growing.
#pragma once

#include <cstddef>
#include <utility>

#include "base/result.h"

namespace atl::http {

class MemoryBudget {
 public:
  explicit MemoryBudget(size_t limit) : limit_(limit) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;
  size_t used() const { return used_; }

 private:
  friend class MemoryShare;
  size_t limit_;
  size_t used_ = 0;
};

// One request's part of a budget, given back when the request has ended. Without a budget it grants
// everything. Move-only.
class MemoryShare {
 public:
  MemoryShare() = default;
  explicit MemoryShare(MemoryBudget& budget) : budget_(&budget) {}
  MemoryShare(MemoryShare&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), taken_(std::exchange(other.taken_, 0)) {}
  MemoryShare& operator=(MemoryShare&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(taken_, other.taken_);
    return *this;
  }
  ~MemoryShare();

  // Accounts for `bytes` more, or fails with ResourceExhausted. What every request may have is not
  // counted.
  Result<void> take(size_t bytes);

  static constexpr size_t kFree = 64 * 1024;

 private:
  size_t counted() const { return taken_ > kFree ? taken_ - kFree : 0; }

  MemoryBudget* budget_ = nullptr;
  size_t taken_ = 0;
};

}  // namespace atl::http
