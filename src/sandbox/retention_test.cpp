#include "sandbox/retention.h"

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

constexpr int64_t kNow = 100'000;

SnapshotPtr snapshot(const std::string& id, const std::string& sandbox, int64_t at) {
  Snapshot made;
  made.id = id;
  made.source.id = sandbox;
  made.created_at_ms = at;
  return std::make_shared<const Snapshot>(std::move(made));
}

std::string ids(const std::vector<SnapshotPtr>& snapshots) {
  std::string all;
  for (const auto& item : snapshots) all += item->id + " ";
  return all;
}

class Retentions : public testing::Test {
 protected:
  std::vector<SnapshotPtr> all_{snapshot("a1", "a", 10'000), snapshot("b1", "b", 20'000),
                                snapshot("a2", "a", 30'000), snapshot("a3", "a", 99'000)};
};

TEST_F(Retentions, TheNewestOfEachSandboxStay) {
  EXPECT_EQ(ids(surplus_snapshots(all_, {.newest = 1, .younger_than_ms = {}}, kNow)), "a1 a2 ");
  EXPECT_EQ(ids(surplus_snapshots(all_, {.newest = 0, .younger_than_ms = {}}, kNow)),
            "a1 b1 a2 a3 ");
}

TEST_F(Retentions, TheYoungStay) {
  EXPECT_EQ(ids(surplus_snapshots(all_, {.newest = {}, .younger_than_ms = 75'000}, kNow)),
            "a1 b1 ");
  EXPECT_EQ(ids(surplus_snapshots(all_, {.newest = 1, .younger_than_ms = 75'000}, kNow)), "a1 ");
}

TEST_F(Retentions, NamedOnesAndPointsOfHistoryAreNotTouched) {
  Snapshot tagged = *all_[0];
  tagged.tags = {"v1"};
  all_[0] = std::make_shared<const Snapshot>(tagged);
  Snapshot point = *all_[2];
  point.automatic = true;
  all_[2] = std::make_shared<const Snapshot>(point);
  EXPECT_EQ(ids(surplus_snapshots(all_, {.newest = 0, .younger_than_ms = {}}, kNow)), "b1 a3 ");
}

}  // namespace
}  // namespace atl::sandbox
