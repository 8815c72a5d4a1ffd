#include "image/tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "image/image_test_support.h"
#include "image/sha256.h"

namespace atl::image {
namespace {

class TreeTest : public testing::Test {
 protected:
  TempDir temp_;
  UniqueFd dir_{open((temp_ / "").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(TreeTest, RemovesATreeDeeperThanThereAreDescriptors) {
  UniqueFd at(dup(dir_.get()));
  for (int depth = 0; depth < 1100; depth++) {
    ASSERT_EQ(mkdirat(at.get(), "1", 0755), 0);
    UniqueFd next(openat(at.get(), "1", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(mkdirat(next.get(), "2", 0755), 0);
    at = std::move(next);
  }
  Result<void> removed = remove_tree(dir_.get(), "1");
  ASSERT_TRUE(removed) << removed.error().message();
  EXPECT_TRUE(list_directory(dir_.get())->empty());
}

TEST_F(TreeTest, RemovingNeverFollowsALink) {
  std::filesystem::create_directories(temp_ / "kept");
  write_file(temp_ / "kept/f", "x");
  std::filesystem::create_directories(temp_ / "gone/sub");
  std::filesystem::create_directory_symlink(temp_ / "kept", temp_ / "gone/sub/link");
  std::filesystem::create_directory_symlink(temp_ / "kept", temp_ / "link");
  ASSERT_TRUE(remove_tree(dir_.get(), "gone"));
  ASSERT_TRUE(remove_tree(dir_.get(), "link"));
  ASSERT_TRUE(remove_tree(dir_.get(), "never-was"));
  EXPECT_EQ(read_file(temp_ / "kept/f"), "x");
}

TEST_F(TreeTest, EnsureDirectoryKeepsOrResetsAnExistingOne) {
  Attributes wanted{0750, getuid(), getgid()};
  ASSERT_TRUE(ensure_directory(dir_.get(), "d", {0700, getuid(), getgid()}, Existing::Keep));
  ASSERT_TRUE(ensure_directory(dir_.get(), "d", wanted, Existing::Keep));
  struct stat info {};
  ASSERT_EQ(fstatat(dir_.get(), "d", &info, 0), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  ASSERT_TRUE(ensure_directory(dir_.get(), "d", wanted, Existing::Reset));
  ASSERT_EQ(fstatat(dir_.get(), "d", &info, 0), 0);
  EXPECT_EQ(info.st_mode & 07777, 0750u);
}

TEST(Sha256, MatchesTheStandard) {
  EXPECT_EQ(Sha256().finish(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 hash;
  hash.update("a", 1);
  hash.update("bc", 2);
  EXPECT_EQ(hash.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace atl::image
