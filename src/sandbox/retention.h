// Which snapshots have served their time.
#pragma once

#include <optional>
#include <vector>

#include "sandbox/snapshot.h"

namespace atl::sandbox {

// What is kept: the newest so many of each sandbox, and those younger than so long. One that either
// keeps stays; so do all that have a tag, which is a name that somebody may use.
struct Retention {
  std::optional<uint32_t> newest;
  std::optional<int64_t> younger_than_ms;
};

// Of the snapshots, oldest first: those to remove. Points of histories have rules of their own, and
// checkpoints are somebody's paused work.
std::vector<SnapshotPtr> surplus_snapshots(const std::vector<SnapshotPtr>& snapshots,
                                           const Retention& retention, int64_t now_ms);

}  // namespace atl::sandbox
