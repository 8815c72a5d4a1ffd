#include "auth/rate_limit.h"

#include <fmt/format.h>

#include <algorithm>

namespace atl::auth {
namespace {

// Tokens are counted in thousandths: at N a second one millisecond brings N of them.
constexpr int64_t kToken = 1000;

int64_t refilled(int64_t held, int64_t elapsed_ms, uint32_t rate, int64_t full) {
  if (elapsed_ms <= 0) return std::min(held, full);
  if (elapsed_ms >= full / rate + 1) return full;
  return std::min(held + elapsed_ms * rate, full);
}

}  // namespace

RateLimiter::Bucket& RateLimiter::touch(std::string_view id, int64_t full, int64_t now_ms) {
  if (auto found = by_id_.find(id); found != by_id_.end()) {
    buckets_.splice(buckets_.begin(), buckets_, found->second);
    return buckets_.front();
  }
  if (buckets_.size() >= max_ids_ && !buckets_.empty()) {
    by_id_.erase(buckets_.back().id);
    buckets_.pop_back();
  }
  buckets_.push_front({std::string(id), full, now_ms});
  by_id_.emplace(buckets_.front().id, buckets_.begin());
  return buckets_.front();
}

Result<void> RateLimiter::take(std::string_view id, uint32_t rate_per_s, uint32_t burst,
                               int64_t now_ms) {
  if (rate_per_s == 0) return {};
  int64_t full = kToken * (burst == 0 ? rate_per_s : burst);
  Bucket& bucket = touch(id, full, now_ms);
  bucket.thousandths = refilled(bucket.thousandths, now_ms - bucket.filled_at_ms, rate_per_s, full);
  bucket.filled_at_ms = std::max(now_ms, bucket.filled_at_ms);
  if (bucket.thousandths >= kToken) {
    bucket.thousandths -= kToken;
    return {};
  }
  int64_t wait_ms = (kToken - bucket.thousandths + rate_per_s - 1) / rate_per_s;
  std::string message =
      fmt::format("more than {} requests a second; try again in {} ms", rate_per_s, wait_ms);
  return fail(Error(ErrorCode::ResourceExhausted, std::move(message))
                  .with_retry_after(static_cast<uint32_t>(wait_ms)));
}

}  // namespace atl::auth
