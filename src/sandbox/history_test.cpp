#include "sandbox/history.h"

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

constexpr int64_t kMinute = 60'000, kHour = 60 * kMinute;

SnapshotPtr point(int64_t at_ms) {
  Snapshot snapshot;
  snapshot.created_at_ms = at_ms;
  return std::make_shared<const Snapshot>(snapshot);
}

TEST(History, TheNewestFiftyStayWhateverTheirAge) {
  std::vector<SnapshotPtr> points;
  for (int i = 0; i < 50; i++) points.push_back(point(i));
  EXPECT_TRUE(surplus_points(points, 1000 * kHour).empty());
}

TEST(History, OlderOnesAreThinnedToOneAnHourForADay) {
  std::vector<SnapshotPtr> points;
  for (int64_t minute = 0; minute < 48 * 60; minute += 10)
    points.push_back(point(minute * kMinute));
  int64_t now = 48 * kHour;
  auto gone = surplus_points(points, now);
  std::vector<int64_t> kept;
  for (const auto& one : points) {
    if (std::find(gone.begin(), gone.end(), one) == gone.end()) kept.push_back(one->created_at_ms);
  }
  size_t older = kept.size() - 50;
  EXPECT_GE(older, 14u);
  EXPECT_LE(older, 17u);
  for (size_t i = 0; i < older; i++) EXPECT_LE(now - kept[i], 24 * kHour);
  for (size_t i = 1; i < older; i++) EXPECT_GT(kept[i] / kHour, kept[i - 1] / kHour);
}

}  // namespace
}  // namespace atl::sandbox
