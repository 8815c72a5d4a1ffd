#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"

namespace atl::auth {

// A token bucket per id. At most `max_ids` are remembered: beyond that the one unused for longest
// is forgotten, and starts full when it comes back. For one thread.
class RateLimiter {
 public:
  explicit RateLimiter(size_t max_ids = 16384) : max_ids_(max_ids) {}
  RateLimiter(const RateLimiter&) = delete;
  RateLimiter& operator=(const RateLimiter&) = delete;

  // Takes one token. ResourceExhausted with retry_after_ms() where there is none. A rate of 0 is no
  // limit; a burst of 0 is one second's worth. `now_ms` is of a clock that never goes back.
  Result<void> take(std::string_view id, uint32_t rate_per_s, uint32_t burst, int64_t now_ms);

  size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    std::string id;
    int64_t thousandths;  // of a token
    int64_t filled_at_ms;
  };
  Bucket& touch(std::string_view id, int64_t full, int64_t now_ms);

  size_t max_ids_;
  std::list<Bucket> buckets_;  // the latest used first
  std::unordered_map<std::string_view, std::list<Bucket>::iterator> by_id_;
};

}  // namespace atl::auth
