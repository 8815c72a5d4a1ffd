#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "client/tar_pack.h"
#include "client/tar_unpack.h"

namespace atl::client {
namespace {

namespace fs = std::filesystem;

class TarTest : public ::testing::Test {
 protected:
  TarTest() {
    std::string name = "/tmp/atoll-tar-XXXXXX";
    base_ = mkdtemp(name.data());
    fs::create_directories(from());
  }
  ~TarTest() override { fs::remove_all(base_); }

  std::string from() const { return base_ + "/from"; }
  std::string to() const { return base_ + "/to"; }
  static void put(const std::string& path, std::string_view text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string get(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string pack(TransferReport* report = nullptr) {
    std::string archive;
    auto done = pack_tar(from(), [&](std::string_view bytes) -> Result<void> {
      archive.append(bytes);
      return {};
    });
    EXPECT_TRUE(done) << done.error().message();
    if (done && report != nullptr) *report = *done;
    return archive;
  }
  Result<TransferReport> unpack(std::string_view archive) {
    auto source = [archive](std::span<char> buffer) mutable -> Result<size_t> {
      // In small pieces, as a network brings them.
      size_t count = archive.copy(buffer.data(), std::min<size_t>(buffer.size(), 700));
      archive.remove_prefix(count);
      return count;
    };
    return unpack_tar(source, to());
  }
  // An archive with one entry of any name.
  static std::string one_entry(const std::string& name, char type, const std::string& link = "") {
    std::string block(512, '\0');
    name.copy(block.data(), 100);
    std::string("0000644").copy(block.data() + 100, 7);
    std::string("00000000000").copy(block.data() + 124, 11);
    std::string("00000000000").copy(block.data() + 136, 11);
    block[156] = type;
    link.copy(block.data() + 157, 100);
    std::string("ustar").copy(block.data() + 257, 5);
    std::string("00").copy(block.data() + 263, 2);
    block.replace(148, 8, 8, ' ');
    unsigned sum = 0;
    for (unsigned char c : block) sum += c;
    snprintf(block.data() + 148, 7, "%06o", sum);
    return block;
  }
  static std::string end() { return std::string(1024, '\0'); }

  std::string base_;
};

TEST_F(TarTest, ATreeComesOutAsItWentIn) {
  put(from() + "/a.txt", "hello");
  put(from() + "/sub/deep/b.bin", std::string("\0\xff\n", 3) + std::string(300'000, 'x'));
  put(from() + "/" + std::string(150, 'n') + "/" + std::string(120, 'm'), "long");
  put(from() + "/grün/日本", "utf-8");
  put(from() + "/bad\xff name", "bytes");
  fs::create_directories(from() + "/empty");
  fs::create_symlink("sub/deep", from() + "/link");
  chmod((from() + "/a.txt").c_str(), 0751);
  chmod((from() + "/empty").c_str(), 0555);
  timespec times[] = {{1'000'000'000, 0}, {1'234'567'890, 0}};
  utimensat(AT_FDCWD, (from() + "/a.txt").c_str(), times, 0);
  utimensat(AT_FDCWD, (from() + "/sub").c_str(), times, 0);

  auto report = unpack(pack());
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->files, 5u);
  EXPECT_EQ(get(to() + "/a.txt"), "hello");
  EXPECT_EQ(get(to() + "/sub/deep/b.bin"), get(from() + "/sub/deep/b.bin"));
  EXPECT_EQ(get(to() + "/" + std::string(150, 'n') + "/" + std::string(120, 'm')), "long");
  EXPECT_EQ(get(to() + "/grün/日本"), "utf-8");
  EXPECT_EQ(get(to() + "/bad\xff name"), "bytes");
  EXPECT_EQ(fs::read_symlink(to() + "/link"), "sub/deep");
  struct stat info {};
  ASSERT_EQ(stat((to() + "/a.txt").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0751u);
  EXPECT_EQ(info.st_mtim.tv_sec, 1'234'567'890);
  ASSERT_EQ(stat((to() + "/empty").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0555u);
  ASSERT_EQ(stat((to() + "/sub").c_str(), &info), 0);
  EXPECT_EQ(info.st_mtim.tv_sec, 1'234'567'890);
}

TEST_F(TarTest, AnEmptyDirectoryIsAnEmptyArchive) {
  auto report = unpack(pack());
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(fs::is_directory(to()));
}

TEST_F(TarTest, PipesAreLeftOutAndCounted) {
  mkfifo((from() + "/pipe").c_str(), 0600);
  TransferReport report;
  pack(&report);
  EXPECT_EQ(report.skipped, 1u);
}

TEST_F(TarTest, ReplacesFilesThatAreThere) {
  put(from() + "/a", "new");
  put(to() + "/a", "old and longer");
  ASSERT_TRUE(unpack(pack()));
  EXPECT_EQ(get(to() + "/a"), "new");
}

TEST_F(TarTest, NamesThatLeadOutAreRefused) {
  for (const char* name : {"../x", "a/../../x", "/tmp/x", "..", "a/.."}) {
    auto done = unpack(one_entry(name, '0') + end());
    EXPECT_FALSE(done) << name;
    EXPECT_FALSE(fs::exists(base_ + "/x")) << name;
  }
}

TEST_F(TarTest, ALinkIsNotFollowedOutOfTheDirectory) {
  fs::create_directories(base_ + "/outside");
  auto done = unpack(one_entry("door", '2', base_ + "/outside") + one_entry("door/x", '0') + end());
  EXPECT_FALSE(done);
  EXPECT_FALSE(fs::exists(base_ + "/outside/x"));
}

TEST_F(TarTest, AFileIsNotWrittenThroughALink) {
  put(base_ + "/victim", "safe");
  auto done = unpack(one_entry("f", '2', base_ + "/victim") + one_entry("f", '0') + end());
  EXPECT_TRUE(done);
  EXPECT_EQ(get(base_ + "/victim"), "safe");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(to() + "/f")));
}

TEST_F(TarTest, AHardLinkOutsideIsRefused) {
  put(base_ + "/victim", "safe");
  EXPECT_FALSE(unpack(one_entry("f", '1', "../victim") + end()));
  EXPECT_FALSE(unpack(one_entry("f", '1', base_ + "/victim") + end()));
}

TEST_F(TarTest, ADamagedArchiveIsAnError) {
  put(from() + "/a", std::string(100'000, 'x'));
  std::string archive = pack();
  EXPECT_FALSE(unpack(std::string_view(archive).substr(0, 50'000)));
}

TEST(SafeEntryPath, IsCleanAndRelative) {
  EXPECT_EQ(*safe_entry_path("./a//b/"), "a/b");
  EXPECT_EQ(*safe_entry_path("."), "");
  EXPECT_EQ(*safe_entry_path("a..b/..."), "a..b/...");
  EXPECT_FALSE(safe_entry_path("a/../b"));
  EXPECT_FALSE(safe_entry_path("/a"));
}

}  // namespace
}  // namespace atl::client
