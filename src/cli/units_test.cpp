#include "cli/units.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

using std::chrono::milliseconds;

TEST(ParseSize, UnitsArePowersOf1024InAnyCase) {
  EXPECT_EQ(*parse_size("512m"), 512u << 20);
  EXPECT_EQ(*parse_size("2g"), uint64_t{2} << 30);
  EXPECT_EQ(*parse_size("1.5GiB"), uint64_t{3} << 29);
  EXPECT_EQ(*parse_size("64KB"), 64u << 10);
  EXPECT_EQ(*parse_size("100b"), 100u);
  EXPECT_EQ(*parse_size("1T"), uint64_t{1} << 40);
}

TEST(ParseSize, RefusesWhatIsNotOne) {
  for (const char* text : {"", "m", "-1m", "1e3m", "1.m", ".5m", "1..5m", "5x", "5mm", "0m",
                           "512 m", "inf", "9999999999t", "1gi"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(ParseSize, ANumberAloneIsAskedForItsUnit) {
  EXPECT_EQ(parse_size("512").error().message(), "'512' needs a unit, for example 512m or 512g");
}

TEST(ParseDuration, ReadsSumsOfUnits) {
  EXPECT_EQ(*parse_duration("30s"), milliseconds(30'000));
  EXPECT_EQ(*parse_duration("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(*parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(*parse_duration("1.5h"), milliseconds(5'400'000));
  EXPECT_EQ(*parse_duration("2d"), milliseconds(172'800'000));
  EXPECT_EQ(*parse_duration("never"), milliseconds(0));
}

TEST(ParseDuration, RefusesWhatIsNotOne) {
  for (const char* text : {"", "s", "30", "-5s", "5 s", "1h30", "5w", "0s", "forever", "1hh"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(ParseCores, AreThousandths) {
  EXPECT_EQ(*parse_cores("1"), 1000u);
  EXPECT_EQ(*parse_cores("0.5"), 500u);
  for (const char* text : {"", "0", "-1", "x", "1c"}) EXPECT_FALSE(parse_cores(text)) << text;
}

TEST(ParseAssignment, SplitsAtTheFirstEqualsSign) {
  auto pair = parse_assignment("A=b=c");
  EXPECT_EQ(pair->first, "A");
  EXPECT_EQ(pair->second, "b=c");
  EXPECT_EQ(parse_assignment("A=")->second, "");
  EXPECT_FALSE(parse_assignment("A"));
  EXPECT_FALSE(parse_assignment("=b"));
}

TEST(FormatSize, KeepsOneDecimalWhereItSaysSomething) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
  EXPECT_EQ(format_size(512u << 20), "512 MiB");
  EXPECT_EQ(format_size((1u << 20) - 1), "1 MiB");
}

TEST(FormatAge, CoarsensWithTime) {
  EXPECT_EQ(format_age(milliseconds(-5)), "0 s");
  EXPECT_EQ(format_age(milliseconds(59'000)), "59 s");
  EXPECT_EQ(format_age(milliseconds(600'000)), "10 min");
  EXPECT_EQ(format_age(milliseconds(3 * 3'600'000)), "3 h");
  EXPECT_EQ(format_age(milliseconds(int64_t{5} * 86'400'000)), "5 d");
}

}  // namespace
}  // namespace atl::cli
