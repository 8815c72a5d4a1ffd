#include "auth/quota.h"

#include <gtest/gtest.h>

#include <limits>

#include "http/status.h"

namespace atl::auth {
namespace {

constexpr uint64_t kMb = 1 << 20;
constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

TEST(Quota, ZeroIsNoLimit) {
  EXPECT_TRUE(check({}, {9, 9, 9, 9}, {1u << 31, 1u << 31, kHuge, kHuge}));
}

TEST(Quota, TheLastUnitFitsAndTheNextDoesNot) {
  Quota limit{.sandboxes = 3};
  EXPECT_TRUE(check(limit, {.sandboxes = 2}, {.sandboxes = 1}));
  EXPECT_FALSE(check(limit, {.sandboxes = 3}, {.sandboxes = 1}));
}

TEST(Quota, SaysWhichHowMuchAndWhereInTheRequest) {
  auto memory =
      check({.memory_bytes = 1024 * kMb}, {.memory_bytes = 768 * kMb}, {.memory_bytes = 512 * kMb});
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().message(),
            "quota exceeded: quotaType memoryMB, current 768, wanted 512, limit 1024; delete "
            "sandboxes, ask for less or have the quota raised");
  EXPECT_EQ(memory.error().field(), "resources.memoryMB");
  auto cpu = check({.cpu_millis = 1500}, {}, {.cpu_millis = 2000});
  EXPECT_EQ(cpu.error().field(), "resources.cpuCores");
  EXPECT_NE(cpu.error().message().find("limit 1.5"), std::string::npos);
  EXPECT_EQ(check({.disk_bytes = 1}, {}, {.disk_bytes = 2}).error().field(), "resources.diskGB");
  EXPECT_EQ(check({.sandboxes = 1}, {.sandboxes = 1}, {.sandboxes = 1}).error().field(), "");
}

TEST(Quota, IsHttp429) {
  Error error = check({.sandboxes = 1}, {.sandboxes = 1}, {.sandboxes = 1}).error();
  EXPECT_EQ(http::status_of(error.code()), 429);
  EXPECT_EQ(http::wire_code(error.code()), "QUOTA_EXCEEDED");
}

TEST(Quota, SumsThatOverflowDoNotFit) {
  EXPECT_FALSE(check({.memory_bytes = kHuge}, {.memory_bytes = kHuge}, {.memory_bytes = kHuge}));
  EXPECT_FALSE(check({.memory_bytes = kHuge}, {.memory_bytes = 2}, {.memory_bytes = kHuge - 1}));
}

TEST(Quota, ALoweredLimitStopsOnlyWhatGrows) {
  Quota limit{.memory_bytes = 1, .disk_bytes = 100};
  Quota used{.memory_bytes = 50, .disk_bytes = 10};
  EXPECT_TRUE(check(limit, used, {.disk_bytes = 10}));
  EXPECT_FALSE(check(limit, used, {.memory_bytes = 1}));
}

}  // namespace
}  // namespace atl::auth
