#include "sandbox/history.h"

namespace atl::sandbox {

std::vector<SnapshotPtr> surplus_points(const std::vector<SnapshotPtr>& points, int64_t now_ms) {
  constexpr size_t kNewest = 50;
  constexpr int64_t kHour = 3'600'000, kDay = 24 * kHour;
  std::vector<SnapshotPtr> surplus;
  if (points.size() <= kNewest) return surplus;
  int64_t last_hour = -1;
  for (size_t i = 0; i < points.size() - kNewest; i++) {
    int64_t hour = points[i]->created_at_ms / kHour;
    bool old = now_ms - points[i]->created_at_ms > kDay;
    if (old || hour == last_hour) surplus.push_back(points[i]);
    if (!old) last_hour = hour;
  }
  return surplus;
}

}  // namespace atl::sandbox
