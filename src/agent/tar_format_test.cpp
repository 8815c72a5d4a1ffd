#include "agent/tar_format.h"

#include <gtest/gtest.h>

namespace atl::agent {
namespace {

TEST(TarFormat, AHeaderComesBack) {
  TarEntry entry{
      .path = "dir/file", .mode = 0751, .uid = 1000, .gid = 7, .size = 12345, .mtime = 1700000000};
  std::string block = make_tar_header(entry);
  ASSERT_EQ(block.size(), kTarBlock);
  auto parsed = parse_tar_header(block.data());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->path, "dir/file");
  EXPECT_EQ(parsed->mode, 0751u);
  EXPECT_EQ(parsed->uid, 1000u);
  EXPECT_EQ(parsed->size, 12345u);
  EXPECT_EQ(parsed->mtime, 1700000000);
}

TEST(TarFormat, ALongNameTravelsInAPaxHeader) {
  TarEntry entry{.path = std::string(300, 'n')};
  std::string bytes = make_tar_header(entry);
  ASSERT_EQ(bytes.size(), 3 * kTarBlock);
  auto pax = parse_tar_header(bytes.data());
  ASSERT_TRUE(pax);
  EXPECT_EQ(pax->type, 'x');
  auto parsed = parse_tar_header(bytes.data() + 2 * kTarBlock);
  ASSERT_TRUE(parsed);
  ASSERT_TRUE(apply_pax(bytes.substr(kTarBlock, pax->size), *parsed));
  EXPECT_EQ(parsed->path, entry.path);
}

TEST(TarFormat, APaxRecordThatLiesAboutItsLengthIsRefused) {
  TarEntry entry;
  EXPECT_FALSE(apply_pax("999 path=x\n", entry));
  EXPECT_FALSE(apply_pax("2 x\n", entry));
  EXPECT_FALSE(apply_pax("junk", entry));
}

TEST(TarFormat, AWrongChecksumIsRefused) {
  std::string block = make_tar_header({.path = "a"});
  block[0] = 'b';
  EXPECT_FALSE(parse_tar_header(block.data()));
}

}  // namespace
}  // namespace atl::agent
