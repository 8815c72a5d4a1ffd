// Which of a sandbox's automatic points are worth keeping.
#pragma once

#include <vector>

#include "sandbox/snapshot.h"

namespace atl::sandbox {

// Of the points, oldest first: those to remove. The newest stay; older ones, one an hour, for a
// day.
std::vector<SnapshotPtr> surplus_points(const std::vector<SnapshotPtr>& points, int64_t now_ms);

}  // namespace atl::sandbox
