#include "base/text_diff.h"

#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>

#include <fstream>
#include <random>
#include <sstream>

namespace atl {
namespace {

TEST(TextDiff, ShowsWhatChangedWithItsSurroundings) {
  EXPECT_EQ(unified_diff("a\nb\nc\n", "a\nb\nc\n"), "");
  EXPECT_EQ(unified_diff("a\nb\nc\n", "a\nx\nc\n"), "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
  EXPECT_EQ(unified_diff("", "new\n"), "@@ -0,0 +1 @@\n+new\n");
  EXPECT_EQ(unified_diff("old\n", ""), "@@ -1 +0,0 @@\n-old\n");
  EXPECT_EQ(unified_diff("a", "a\n"), "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
}

TEST(TextDiff, DistantChangesAreHunksOfTheirOwn) {
  std::string before, after;
  for (int i = 0; i < 40; i++) {
    before += std::to_string(i) + "\n";
    after += (i == 3 || i == 30 ? "changed" : std::to_string(i)) + std::string("\n");
  }
  std::string diff = unified_diff(before, after);
  EXPECT_NE(diff.find("@@ -1,7 +1,7 @@"), diff.npos) << diff;
  EXPECT_NE(diff.find("@@ -28,7 +28,7 @@"), diff.npos) << diff;
}

TEST(TextDiff, TooManyEditsReplaceAll) {
  EXPECT_EQ(unified_diff("a\nb\n", "c\nd\n", 3, 1), "@@ -1,2 +1,2 @@\n-a\n-b\n+c\n+d\n");
}

// What patch makes of the old text with our diff is the new text.
TEST(TextDiff, PatchTakesIt) {
  std::mt19937 random(7);
  char dir[] = "/tmp/atoll-diff-XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  std::string base(dir);
  for (int round = 0; round < 40; round++) {
    auto text = [&](int lines) {
      std::string made;
      for (int i = 0; i < lines; i++) made += std::to_string(random() % 6) + "\n";
      return made;
    };
    std::string before = text(static_cast<int>(random() % 60));
    std::string after = text(static_cast<int>(random() % 60));
    std::string diff = unified_diff(before, after);
    std::ofstream(base + "/f") << before;
    std::ofstream(base + "/d") << "--- f\n+++ f\n" << diff;
    if (!diff.empty()) {
      std::string command = "cd " + base + " && patch -s f < d >/dev/null 2>&1";
      ASSERT_EQ(system(command.c_str()), 0) << diff;
    }
    std::ifstream file(base + "/f");
    std::stringstream made;
    made << file.rdbuf();
    ASSERT_EQ(made.str(), after) << "before:\n" << before << "diff:\n" << diff;
  }
  ASSERT_EQ(system(("rm -rf " + base).c_str()), 0);
}

TEST(TextDiff, TellsTextFromBytes) {
  EXPECT_TRUE(is_text("plain\n"));
  EXPECT_TRUE(is_text("grün \xE2\x82\xAC"));
  EXPECT_FALSE(is_text(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_text("\xFF\xFE"));
  EXPECT_FALSE(is_text("\xE2\x82"));
}

}  // namespace
}  // namespace atl
