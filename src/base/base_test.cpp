#include <gtest/gtest.h>

#include "base/error.h"
#include "base/iso_time.h"
#include "base/json_escape.h"
#include "base/random_id.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace atl {
namespace {

TEST(Error, SaysWhatFailedOnWhatAndWhy) {
  Error error = Error::from_errno(ENOENT, "openat", "/x");
  EXPECT_EQ(error.message(), "openat /x: No such file or directory");
  EXPECT_EQ(error.code(), ErrorCode::NotFound);
  EXPECT_EQ(error.sys_errno(), ENOENT);
  EXPECT_EQ(std::move(error).context("reading it").message(),
            "reading it: openat /x: No such file or directory");
}

Result<int> half(int value) {
  if (value % 2 != 0) return fail(ErrorCode::InvalidArgument, "odd");
  return value / 2;
}
Result<int> quarter(int value) {
  ATOLL_ASSIGN(int once, half(value));
  ATOLL_ASSIGN(int twice, half(once));
  return twice;
}

TEST(Result, PropagatesTheFirstError) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).error().message(), "odd");
}

TEST(JsonEscape, WritesValidJsonWhateverTheBytes) {
  std::string out;
  append_json_string(out, std::string("a\"\\\n\x01\xff\xC3\xA9\xED\xA0\x80z", 12));
  EXPECT_EQ(out,
            "\"a\\\"\\\\\\n\\u0001\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\"");
}

TEST(JsonEscape, KnowsWellFormedUtf8) {
  EXPECT_TRUE(is_valid_utf8("gr\xC3\xBC\xC3\x9F \xF0\x9F\x8F\x9D"));
  EXPECT_FALSE(is_valid_utf8("\xC0\x80"));
  EXPECT_FALSE(is_valid_utf8("\xF4\x90\x80\x80"));
  EXPECT_FALSE(is_valid_utf8("\xE2\x82"));
}

TEST(IsoTime, HasMillisecondsAndIsUtc) {
  EXPECT_EQ(iso_time(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(iso_time(1767323045678), "2026-01-02T03:04:05.678Z");
}

TEST(RandomId, IsValidAndNeverTheSame) {
  std::string a = random_id("sandbox-"), b = random_id("sandbox-");
  EXPECT_NE(a, b);
  EXPECT_TRUE(is_valid_id(a));
  EXPECT_EQ(a.size(), 20u);
}

TEST(ValidId, RefusesWhateverCouldBeAPath) {
  for (const char* bad : {"", "-a", "a/b", "..", "A", "a b", "a_b", "a\n", "$(id)"}) {
    EXPECT_FALSE(is_valid_id(bad)) << bad;
  }
  EXPECT_FALSE(is_valid_id(std::string(65, 'a')));
  EXPECT_TRUE(is_valid_id("a-1"));
}

TEST(UniqueFd, ClosesOnceAndKnowsZero) {
  UniqueFd fd(dup(0));
  EXPECT_TRUE(fd.valid());
  UniqueFd moved = std::move(fd);
  EXPECT_FALSE(fd.valid());  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(UniqueFd(dup(0)).get() >= 0);
}

}  // namespace
}  // namespace atl
