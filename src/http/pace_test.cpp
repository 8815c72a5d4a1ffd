#include "http/pace.h"

#include <gtest/gtest.h>

namespace atl::http {
namespace {

using std::chrono::seconds;

TEST(Pace, TheFirstWindowIsFree) {
  Pace pace(seconds(10), 100);
  EXPECT_EQ(pace.patience(), seconds(20));
  EXPECT_TRUE(pace.waited(seconds(9)));
  EXPECT_EQ(pace.patience(), seconds(11));
  EXPECT_TRUE(pace.waited(seconds(1)));
  EXPECT_EQ(pace.patience(), seconds(10));
}

TEST(Pace, WhoSendsEnoughHasUntilTheNextWindowEnds) {
  Pace pace(seconds(10), 100);
  EXPECT_TRUE(pace.waited(seconds(12)));
  pace.received(99);
  EXPECT_EQ(pace.patience(), seconds(8));
  pace.received(1);
  EXPECT_EQ(pace.patience(), seconds(18));
}

TEST(Pace, WhatCameEarlierDoesNotCount) {
  Pace pace(seconds(10), 100);
  pace.received(1'000'000);
  EXPECT_TRUE(pace.waited(seconds(15)));
  EXPECT_EQ(pace.patience(), seconds(5));
}

TEST(Pace, ATrickleRunsOutOfPatience) {
  Pace pace(seconds(10), 100);
  int rounds = 0;
  for (; pace.patience() > seconds(1) && rounds < 100; rounds++) {
    ASSERT_TRUE(pace.waited(seconds(1)));
    pace.received(1);
  }
  EXPECT_EQ(rounds, 19);
}

TEST(Pace, WhatComesTooLateIsTooLate) {
  Pace pace(seconds(10), 100);
  EXPECT_FALSE(pace.waited(seconds(21)));
}

TEST(Pace, ASteadyPaceGoesOnForEver) {
  Pace pace(seconds(10), 100);
  for (int i = 0; i < 1000; i++) {
    ASSERT_GT(pace.patience(), seconds(1));
    ASSERT_TRUE(pace.waited(seconds(1)));
    pace.received(11);
  }
}

TEST(Pace, NoneIsAskedFor) {
  Pace pace(seconds(10), 0);
  EXPECT_TRUE(pace.waited(seconds(1000)));
  EXPECT_EQ(pace.patience(), Pace::Duration::max());
}

}  // namespace
}  // namespace atl::http
