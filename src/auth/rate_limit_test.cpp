#include "auth/rate_limit.h"

#include <gtest/gtest.h>

#include <limits>

namespace atl::auth {
namespace {

int taken(RateLimiter& limiter, std::string_view id, uint32_t rate, uint32_t burst, int64_t now) {
  int count = 0;
  while (count < 1000 && limiter.take(id, rate, burst, now)) count++;
  return count;
}

TEST(RateLimit, ABurstThenTheRate) {
  RateLimiter limiter;
  EXPECT_EQ(taken(limiter, "a", 10, 5, 0), 5);
  EXPECT_EQ(taken(limiter, "a", 10, 5, 99), 0);
  EXPECT_EQ(taken(limiter, "a", 10, 5, 100), 1);
  EXPECT_EQ(taken(limiter, "a", 10, 5, 400), 3);
  EXPECT_EQ(taken(limiter, "a", 10, 5, 1'000'000), 5);
}

TEST(RateLimit, SaysHowLongToWaitAndThatIsEnough) {
  RateLimiter limiter;
  EXPECT_EQ(taken(limiter, "a", 3, 1, 0), 1);
  auto refused = limiter.take("a", 3, 1, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::ResourceExhausted);
  EXPECT_EQ(refused.error().retry_after_ms(), 334u);
  EXPECT_FALSE(limiter.take("a", 3, 1, 333));
  EXPECT_TRUE(limiter.take("a", 3, 1, 334));
}

TEST(RateLimit, RefusedRequestsCostNothing) {
  RateLimiter limiter;
  EXPECT_EQ(taken(limiter, "a", 1, 1, 0), 1);
  for (int64_t now = 1; now < 1000; now++) EXPECT_FALSE(limiter.take("a", 1, 1, now));
  EXPECT_TRUE(limiter.take("a", 1, 1, 1000));
}

TEST(RateLimit, ZeroIsNoLimitAndNoBurstIsOneSecondsWorth) {
  RateLimiter limiter;
  EXPECT_EQ(taken(limiter, "a", 0, 0, 0), 1000);
  EXPECT_EQ(limiter.size(), 0u);
  EXPECT_EQ(taken(limiter, "b", 7, 0, 0), 7);
}

TEST(RateLimit, IdsDoNotShare) {
  RateLimiter limiter;
  EXPECT_EQ(taken(limiter, "a", 2, 2, 0), 2);
  EXPECT_EQ(taken(limiter, "b", 2, 2, 0), 2);
}

TEST(RateLimit, AClockThatGoesBackGivesNothingAway) {
  RateLimiter limiter;
  EXPECT_EQ(taken(limiter, "a", 1, 1, 5000), 1);
  EXPECT_FALSE(limiter.take("a", 1, 1, 0));
  EXPECT_FALSE(limiter.take("a", 1, 1, 5500));
  EXPECT_TRUE(limiter.take("a", 1, 1, 6000));
}

TEST(RateLimit, ExtremesDoNotOverflow) {
  constexpr auto kMost = std::numeric_limits<uint32_t>::max();
  RateLimiter limiter;
  EXPECT_TRUE(limiter.take("a", kMost, kMost, 0));
  EXPECT_TRUE(limiter.take("a", kMost, kMost, std::numeric_limits<int64_t>::max()));
  EXPECT_TRUE(limiter.take("b", 1, kMost, 0));
  EXPECT_TRUE(limiter.take("b", 1, kMost, std::numeric_limits<int64_t>::max()));
}

TEST(RateLimit, ForgetsTheLeastRecentlyUsedWhenFull) {
  RateLimiter limiter(2);
  EXPECT_TRUE(limiter.take("a", 1, 1, 0));
  EXPECT_TRUE(limiter.take("b", 1, 1, 0));
  EXPECT_FALSE(limiter.take("a", 1, 1, 0));
  EXPECT_TRUE(limiter.take("c", 1, 1, 0));  // in place of b
  EXPECT_EQ(limiter.size(), 2u);
  EXPECT_FALSE(limiter.take("a", 1, 1, 0));
  EXPECT_TRUE(limiter.take("b", 1, 1, 0));
}

}  // namespace
}  // namespace atl::auth
