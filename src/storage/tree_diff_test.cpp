#include "storage/tree_diff.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/unique_fd.h"

namespace atl::storage {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class TreeDiff : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "whiteouts need root";
    std::string pattern = "/var/tmp/atoll-tree-diff-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    for (const char* name : {"layer", "before", "after"}) fs::create_directory(dir_ / name);
  }
  void TearDown() override {
    if (!dir_.empty()) fs::remove_all(dir_);
  }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories((dir_ / path).parent_path());
    std::ofstream(dir_ / path) << text;
  }
  void whiteout(const std::string& path) {
    fs::create_directories((dir_ / path).parent_path());
    ASSERT_EQ(mknod((dir_ / path).c_str(), S_IFCHR, makedev(0, 0)), 0);
  }
  void opaque(const std::string& path) {
    fs::create_directories(dir_ / path);
    ASSERT_EQ(setxattr((dir_ / path).c_str(), "trusted.overlay.opaque", "y", 1, 0), 0);
  }

  Diff diff(bool with_texts = false) {
    UniqueFd before(open((dir_ / "before").c_str(), O_RDONLY | O_DIRECTORY));
    UniqueFd after(open((dir_ / "after").c_str(), O_RDONLY | O_DIRECTORY));
    UniqueFd layer(open((dir_ / "layer").c_str(), O_RDONLY | O_DIRECTORY));
    DiffPlan plan{.before = before.get(), .after = after.get(), .layers = {layer.get()}};
    plan.with_texts = with_texts;
    return *diff_trees(plan);
  }
  std::vector<std::string> changes() {
    std::vector<std::string> texts;
    for (const Change& change : diff().changes) {
      texts.push_back(std::string(1, "+~-"[static_cast<int>(change.kind)]) + change.type +
                      change.path);
    }
    return texts;
  }

  fs::path dir_;
};

TEST_F(TreeDiff, TellsAddedChangedAndRemoved) {
  put("layer/etc/motd", "hello\n");
  put("layer/etc/gone", "x");
  put("layer/usr/kept", "x");
  put("before/work/same", "same\n");
  fs::create_directories(dir_ / "after/work");
  fs::copy_file(dir_ / "before/work/same", dir_ / "after/work/same");
  fs::last_write_time(dir_ / "after/work/same", fs::last_write_time(dir_ / "before/work/same"));
  put("before/work/old", "1");
  put("before/work/changed", "1");
  put("after/work/changed", "22");
  put("after/work/new/deep", "n");
  put("after/etc/motd", "changed\n");
  whiteout("after/etc/gone");
  EXPECT_THAT(changes(), ElementsAre("-f/etc/gone", "~f/etc/motd", "~f/work/changed", "+d/work/new",
                                     "+f/work/new/deep", "-f/work/old"));
}

TEST_F(TreeDiff, NothingChangedIsNothing) {
  put("layer/a", "x");
  EXPECT_THAT(changes(), IsEmpty());
}

TEST_F(TreeDiff, AReplacedDirectoryHidesTheLayers) {
  put("layer/d/one", "1");
  put("layer/d/two", "2");
  opaque("after/d");
  put("after/d/three", "3");
  EXPECT_THAT(changes(), ElementsAre("-f/d/one", "+f/d/three", "-f/d/two"));
}

TEST_F(TreeDiff, AWhiteoutThatIsTakenBackIsNoLoss) {
  put("layer/d/one", "1");
  whiteout("before/d");
  EXPECT_THAT(changes(), ElementsAre("+d/d"));
}

TEST_F(TreeDiff, FollowsNoLink) {
  put("layer/secret/file", "s");
  fs::create_directories(dir_ / "after/d");
  fs::create_symlink("/etc", dir_ / "after/d/link");
  fs::create_symlink("../layer/secret", dir_ / "after/d/up");
  EXPECT_THAT(changes(), ElementsAre("+d/d", "+l/d/link", "+l/d/up"));
}

TEST_F(TreeDiff, HasTheTextsOfSmallFiles) {
  put("layer/f", "one\ntwo\n");
  put("after/f", "one\nthree\n");
  put("after/bytes", std::string("\0\1", 2));
  Diff found = diff(true);
  ASSERT_EQ(found.changes.size(), 2u);
  EXPECT_EQ(found.changes[0].text, "");
  EXPECT_EQ(found.changes[1].text, "@@ -1,2 +1,2 @@\n one\n-two\n+three\n");
}

TEST_F(TreeDiff, StopsAtItsLimit) {
  for (int i = 0; i < 50; i++) put("after/" + std::to_string(i), "x");
  UniqueFd before(open((dir_ / "before").c_str(), O_RDONLY | O_DIRECTORY));
  UniqueFd after(open((dir_ / "after").c_str(), O_RDONLY | O_DIRECTORY));
  auto found = diff_trees({.before = before.get(), .after = after.get(), .max_bytes = 340});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->changes.size(), 10u);
  EXPECT_FALSE(found->complete);
}

}  // namespace
}  // namespace atl::storage
