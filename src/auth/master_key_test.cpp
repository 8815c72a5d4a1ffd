#include "auth/master_key.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "auth/auth_test_support.h"
#include "auth/digest.h"

namespace atl::auth {
namespace {

using testing::HasSubstr;

std::string derived(const MasterKey& key, std::string_view label) {
  return std::string(as_text(key.derive(label).bytes()));
}

TEST(MasterKey, IsMadeOnceAndReadBack) {
  TempDir dir;
  auto made = MasterKey::load_or_create(dir / "key");
  ASSERT_TRUE(made) << made.error().message();
  struct stat info {};
  ASSERT_EQ(stat((dir / "key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(info.st_size, 32);
  auto again = MasterKey::load_or_create(dir / "key");
  ASSERT_TRUE(again);
  EXPECT_EQ(derived(*made, "x"), derived(*again, "x"));
  auto files = std::filesystem::directory_iterator(dir.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "temporary files stay behind";
}

TEST(MasterKey, StartingTogetherGivesOneKey) {
  TempDir dir;
  std::vector<std::string> seen(8);
  {
    std::vector<std::jthread> threads;
    for (std::string& mine : seen) {
      threads.emplace_back([&] {
        auto key = MasterKey::load_or_create(dir / "key");
        if (key) mine = derived(*key, "x");
      });
    }
  }
  EXPECT_THAT(seen, testing::Each(testing::AllOf(seen[0], testing::SizeIs(32))));
}

TEST(MasterKey, LabelsGiveUnrelatedKeysAndNeverTheMasterItself) {
  MasterKey key(SecretKey(SecretKey::Bytes(std::array<uint8_t, 32>{})));
  EXPECT_NE(derived(key, kSecretsLabel), derived(key, kTokenSigningLabel));
  EXPECT_NE(derived(key, kSecretsLabel), std::string(32, '\0'));
  EXPECT_EQ(derived(key, kSecretsLabel), derived(key, kSecretsLabel));
}

Error refusal(const std::string& path) {
  auto key = MasterKey::load_or_create(path);
  return key ? Error(ErrorCode::Internal, "accepted") : std::move(key).error();
}

TEST(MasterKey, RefusesWhatOthersCouldRead) {
  TempDir dir;
  ASSERT_TRUE(MasterKey::load_or_create(dir / "key"));
  for (mode_t mode : {0640u, 0604u, 0620u, 0601u}) {
    chmod((dir / "key").c_str(), mode);
    Error error = refusal(dir / "key");
    EXPECT_EQ(error.code(), ErrorCode::InvalidState);
    EXPECT_THAT(error.message(), HasSubstr("chmod 600 " + (dir / "key")));
  }
}

TEST(MasterKey, RefusesOtherSizesAndNeverReplacesThem) {
  TempDir dir;
  for (size_t size : {0u, 31u, 33u}) {
    write_file(dir / "key", std::string(size, 'k'));
    chmod((dir / "key").c_str(), 0600);
    EXPECT_THAT(refusal(dir / "key").message(), HasSubstr("restore it from a backup"));
    EXPECT_EQ(read_file(dir / "key").size(), size);
  }
}

TEST(MasterKey, RefusesLinksFifosAndDirectories) {
  TempDir dir;
  ASSERT_TRUE(MasterKey::load_or_create(dir / "key"));
  ASSERT_EQ(symlink("key", (dir / "link").c_str()), 0);
  EXPECT_THAT(refusal(dir / "link").message(), HasSubstr("symbolic link"));
  ASSERT_EQ(symlink("nowhere", (dir / "dangling").c_str()), 0);
  EXPECT_THAT(refusal(dir / "dangling").message(), HasSubstr("symbolic link"));
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(refusal(dir / "fifo").message(), HasSubstr("regular file"));
  ASSERT_EQ(mkdir((dir / "dir").c_str(), 0700), 0);
  EXPECT_THAT(refusal(dir / "dir").message(), HasSubstr("regular file"));
}

TEST(MasterKey, SaysWhichDirectoryIsMissing) {
  TempDir dir;
  EXPECT_THAT(refusal(dir / "no/key").message(), HasSubstr("open directory " + (dir / "no/")));
}

TEST(MasterKey, RefusesAFileOfAnotherAccount) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  TempDir dir;
  ASSERT_TRUE(MasterKey::load_or_create(dir / "key"));
  ASSERT_EQ(chown((dir / "key").c_str(), 4242, 4242), 0);
  EXPECT_THAT(refusal(dir / "key").message(), HasSubstr("belongs to user 4242"));
}

}  // namespace
}  // namespace atl::auth
