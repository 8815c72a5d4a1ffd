#include "http/target.h"

#include <gtest/gtest.h>

namespace atl::http {
namespace {

TEST(PercentDecoding, DecodesEitherCaseAndLeavesPlusAlone) {
  EXPECT_EQ(*percent_decode("a%2Fb%2fc+d%20e"), "a/b/c+d e");
}

TEST(PercentDecoding, RefusesMalformedSequences) {
  for (std::string_view bad : {"%", "%2", "a%", "%zz", "%2g", "%%20", "x%0"}) {
    auto decoded = percent_decode(bad);
    ASSERT_FALSE(decoded) << bad;
    EXPECT_EQ(decoded.error().code(), ErrorCode::InvalidArgument);
  }
}

TEST(PercentDecoding, RefusesNul) { EXPECT_FALSE(percent_decode("etc%00passwd")); }

TEST(PercentDecoding, UndoesEncoding) {
  std::string every;
  for (int c = 1; c < 256; c++) every.push_back(static_cast<char>(c));
  EXPECT_EQ(*percent_decode(percent_encode(every)), every);
  EXPECT_EQ(percent_encode_path("/a b/c"), "/a%20b/c");
  EXPECT_EQ(percent_encode("a/b"), "a%2Fb");
}

TEST(Query, KeepsRepeatedNamesInOrder) {
  auto query = *Query::parse("a=1&b=x+y%21&a=2&&c");
  EXPECT_EQ(query.get("a"), "1");
  EXPECT_EQ(query.all("a"), (std::vector<std::string_view>{"1", "2"}));
  EXPECT_EQ(query.get("b"), "x y!");
  EXPECT_EQ(query.get("c"), "");
  EXPECT_EQ(query.size(), 4u);
}

TEST(Query, RequiringAnAbsentParameterNamesIt) {
  auto query = *Query::parse("path=");
  auto missing = query.require("path");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(missing.error().field(), "path");
}

TEST(Query, FlagsAreStrict) {
  auto query = *Query::parse("a&b=true&c=0&d=maybe");
  EXPECT_TRUE(*query.flag("a"));
  EXPECT_TRUE(*query.flag("b"));
  EXPECT_FALSE(*query.flag("c"));
  EXPECT_FALSE(*query.flag("absent"));
  EXPECT_FALSE(query.flag("d"));
}

TEST(Target, SplitsPathAndQuery) {
  auto split = *split_target("/a/b?x=1?y");
  EXPECT_EQ(split.path, "/a/b");
  EXPECT_EQ(split.query, "x=1?y");
}

TEST(Target, AbsoluteFormLosesItsAuthority) {
  EXPECT_EQ(split_target("http://host:80/a?b")->path, "/a");
  EXPECT_EQ(split_target("http://host")->path, "/");
  EXPECT_EQ(split_target("http://host?q")->query, "q");
}

TEST(Target, OtherFormsAreRefused) {
  EXPECT_FALSE(split_target("*"));
  EXPECT_FALSE(split_target("host:80"));
  EXPECT_FALSE(split_target("/a#b"));
  EXPECT_FALSE(split_target(""));
}

}  // namespace
}  // namespace atl::http
