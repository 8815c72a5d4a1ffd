#include "sandbox/retention.h"

#include <algorithm>

namespace atl::sandbox {

std::vector<SnapshotPtr> surplus_snapshots(const std::vector<SnapshotPtr>& snapshots,
                                           const Retention& retention, int64_t now_ms) {
  std::map<std::string, uint32_t> seen;  // by sandbox
  std::vector<SnapshotPtr> surplus;
  for (auto it = snapshots.rbegin(); it != snapshots.rend(); ++it) {
    const Snapshot& snapshot = **it;
    if (snapshot.automatic || snapshot.memory) continue;
    uint32_t newer = seen[snapshot.source.id]++;
    bool among_newest = retention.newest && newer < *retention.newest;
    bool young =
        retention.younger_than_ms && now_ms - snapshot.created_at_ms < *retention.younger_than_ms;
    if (!among_newest && !young && snapshot.tags.empty()) surplus.push_back(*it);
  }
  std::reverse(surplus.begin(), surplus.end());
  return surplus;
}

}  // namespace atl::sandbox
