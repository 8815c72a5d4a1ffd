#include "cli/target.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

TEST(ParseTarget, AColonBeforeTheFirstSlashMakesItRemote) {
  auto target = parse_target("web:/etc/hosts");
  ASSERT_TRUE(target);
  EXPECT_TRUE(target->remote());
  EXPECT_EQ(target->sandbox, "web");
  EXPECT_EQ(target->path, "/etc/hosts");
  EXPECT_EQ(parse_target("web:rel/a:b")->path, "rel/a:b");
  EXPECT_EQ(parse_target("web:")->path, "/workspace");
}

TEST(ParseTarget, EverythingElseIsLocal) {
  for (const char* text : {"./a:b", "/a:b", "dir/web:/x", "plain", "."}) {
    auto target = parse_target(text);
    ASSERT_TRUE(target) << text;
    EXPECT_FALSE(target->remote()) << text;
    EXPECT_EQ(target->path, text);
  }
}

TEST(ParseTarget, ADashIsAStandardStream) {
  EXPECT_EQ(parse_target("-")->kind, Target::Kind::Standard);
}

TEST(ParseTarget, RefusesEmptyNames) {
  EXPECT_FALSE(parse_target(""));
  EXPECT_FALSE(parse_target(":/x"));
  EXPECT_FALSE(parse_remote("/local"));
}

TEST(LastName, IsWhatAFileIsCalled) {
  EXPECT_EQ(last_name("/a/b/c"), "c");
  EXPECT_EQ(last_name("/a/b/"), "b");
  EXPECT_EQ(last_name("c"), "c");
  EXPECT_EQ(last_name("/"), "");
  EXPECT_EQ(last_name("dir/."), "");
  EXPECT_EQ(last_name(".."), "");
  EXPECT_EQ(join_path("/a", "b"), "/a/b");
  EXPECT_EQ(join_path("/", "b"), "/b");
}

}  // namespace
}  // namespace atl::cli
