#include "sandbox/due.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

namespace atl::sandbox {
namespace {

constexpr int64_t kHour = 3'600'000;
constexpr int64_t kYear = 365 * 24 * kHour;
constexpr int64_t kWall = 50 * kYear;

Record started(int64_t boot_ms) {
  Record record;
  record.started_at_ms = kWall;
  record.since = {"this", boot_ms};
  record.spec.max_lifetime_s = 3600;
  return record;
}

TEST(Due, AClockThatIsSetEndsNothingAndSavesNothing) {
  Record record = started(10 * kHour);
  for (int64_t jump : {-kYear, int64_t{0}, kYear}) {
    BootTime soon{"this", 10 * kHour + kHour / 2}, late{"this", 11 * kHour + 1};
    int64_t wall = kWall + kHour / 2 + jump;
    // Also for a server that was started again after the jump.
    EXPECT_EQ(on_this_boot(record, soon, wall).ms, 10 * kHour);
    EXPECT_EQ(on_this_boot(record, late, wall).ms, 10 * kHour);
  }
}

TEST(Due, AfterABootTheWallClockDecides) {
  Record record = started(10 * kHour);
  BootTime now{"next", 1000};
  EXPECT_EQ(on_this_boot(record, now, kWall + kHour).ms, 1000 - kHour);
  EXPECT_EQ(on_this_boot(record, now, kWall + kHour).boot, "next");
  EXPECT_EQ(on_this_boot(record, now, kWall - kYear).ms, 1000) << "started in the future: now";
  record.ended_at_ms = kWall + kHour;
  EXPECT_EQ(on_this_boot(record, now, kWall + 3 * kHour).ms, 1000 - 2 * kHour);
}

TEST(Due, RecordsOfEarlierVersionsAreOfAnotherBoot) {
  Record record = started(0);
  record.since = {};
  EXPECT_EQ(on_this_boot(record, {"this", 5}, kWall + kHour).ms, 5 - kHour);
}

TEST(Due, StoppedOnesAreShelvedForAsLongAsSaid) {
  boost::asio::io_context io;
  Sandbox sandbox(io.get_executor(), started(10 * kHour));
  sandbox.record.ended_at_ms = kWall;
  EXPECT_EQ(due(sandbox, {"this", 10 * kHour + kYear}), Due::Nothing) << "no such limit";
  sandbox.record.spec.delete_after_stopped_s = 60;
  EXPECT_EQ(due(sandbox, {"this", 10 * kHour + 60'000}), Due::Nothing);
  EXPECT_EQ(due(sandbox, {"this", 10 * kHour + 60'001}), Due::Shelved);
}

TEST(Due, RecordsKeepTheTimeOfTheirBoot) {
  Record record = started(10 * kHour);
  auto again = decode_record(encode_record(record).value());
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->since.boot, "this");
  EXPECT_EQ(again->since.ms, 10 * kHour);
}

TEST(BootTime, GoesOn) {
  BootTime first = BootTime::now(), second = BootTime::now();
  EXPECT_FALSE(first.boot.empty());
  EXPECT_EQ(first.boot, second.boot);
  EXPECT_LE(first.ms, second.ms);
}

}  // namespace
}  // namespace atl::sandbox
