#include "base/base64url.h"

#include <gtest/gtest.h>

namespace atl {
namespace {

TEST(Base64Url, WritesWhatTheRfcSays) {
  EXPECT_EQ(base64url_encode(""), "");
  EXPECT_EQ(base64url_encode("f"), "Zg");
  EXPECT_EQ(base64url_encode("fo"), "Zm8");
  EXPECT_EQ(base64url_encode("foo"), "Zm9v");
  EXPECT_EQ(base64url_encode("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64url_encode("\xFB\xFF\xFE"), "-__-");
}

TEST(Base64Url, ReadsBackEveryByteAtEveryOffset) {
  std::string bytes;
  for (int i = 0; i < 259; i++) {
    bytes.push_back(static_cast<char>(i * 7));
    EXPECT_EQ(base64url_decode(base64url_encode(bytes)), bytes);
  }
}

TEST(Base64Url, RefusesPaddingAndForeignCharacters) {
  for (const char* bad : {"Zg==", "Zm8=", "Zm+v", "Zm/v", "Zm9v\n", " Zm9", "Zm9\x80", "Zm.v"}) {
    EXPECT_FALSE(base64url_decode(bad)) << bad;
  }
  EXPECT_FALSE(base64url_decode(std::string_view("Zm\0v", 4)));
}

TEST(Base64Url, RefusesASecondSpellingOfTheSameBytes) {
  EXPECT_TRUE(base64url_decode("Zg"));
  EXPECT_FALSE(base64url_decode("Zh"));   // four spare bits, one set
  EXPECT_FALSE(base64url_decode("Zm9"));  // two spare bits, one set
  EXPECT_FALSE(base64url_decode("Z"));
  EXPECT_FALSE(base64url_decode("Zm9vY"));
}

}  // namespace
}  // namespace atl
