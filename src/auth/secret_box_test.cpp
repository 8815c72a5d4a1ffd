#include "auth/secret_box.h"

#include <gtest/gtest.h>

namespace atl::auth {
namespace {

constexpr SecretName kName{"acme", "GITHUB_TOKEN"};

TEST(SecretBox, OpensWhatItSealed) {
  SecretBox box(SecretKey::random());
  for (const std::string& plain : {std::string(), std::string("hush"), std::string("a\0b", 3),
                                   std::string(SecretBox::kMaxPlainBytes, 'x')}) {
    std::string sealed = box.seal(plain, kName).value();
    auto opened = box.open(sealed, kName);
    ASSERT_TRUE(opened) << opened.error().message();
    EXPECT_EQ(opened->text(), plain);
    EXPECT_EQ(sealed.size(), plain.size() + 1 + 12 + 16);
  }
}

TEST(SecretBox, NeverSealsTheSameTwice) {
  SecretBox box(SecretKey::random());
  std::string a = box.seal("hush", kName).value(), b = box.seal("hush", kName).value();
  EXPECT_NE(a, b);
  EXPECT_EQ(a.find("hush"), std::string::npos);
}

TEST(SecretBox, EveryAlteredBitIsNoticed) {
  SecretBox box(SecretKey::random());
  const std::string sealed = box.seal("hush", kName).value();
  for (size_t bit = 0; bit < sealed.size() * 8; bit++) {
    std::string altered = sealed;
    altered[bit / 8] = static_cast<char>(altered[bit / 8] ^ (1 << bit % 8));
    auto opened = box.open(altered, kName);
    ASSERT_FALSE(opened) << "bit " << bit;
    EXPECT_EQ(opened.error().code(), bit < 8 ? ErrorCode::NotSupported : ErrorCode::Internal);
  }
}

TEST(SecretBox, EveryOtherLengthIsNoticed) {
  SecretBox box(SecretKey::random());
  const std::string sealed = box.seal("hush", kName).value();
  for (size_t size = 0; size < sealed.size(); size++) {
    EXPECT_FALSE(box.open(std::string_view(sealed).substr(0, size), kName)) << size;
  }
  EXPECT_FALSE(box.open(sealed + "x", kName));
  EXPECT_FALSE(box.open(sealed + std::string(SecretBox::kMaxPlainBytes + 1, 'x'), kName));
}

TEST(SecretBox, IsBoundToTenantNameAndKey) {
  SecretKey key = SecretKey::random();
  SecretBox box(key.copy());
  std::string sealed = box.seal("hush", kName).value();
  EXPECT_FALSE(box.open(sealed, {"other", kName.name}));
  EXPECT_FALSE(box.open(sealed, {kName.tenant, "OTHER"}));
  EXPECT_FALSE(SecretBox(SecretKey::random()).open(sealed, kName));
  EXPECT_TRUE(SecretBox(std::move(key)).open(sealed, kName));
}

TEST(SecretBox, TenantAndNameDoNotRunIntoEachOther) {
  SecretBox box(SecretKey::random());
  std::string sealed = box.seal("hush", {"ab", "c"}).value();
  EXPECT_FALSE(box.open(sealed, {"a", "bc"}));
}

TEST(SecretBox, TooLongIsRefused) {
  SecretBox box(SecretKey::random());
  auto sealed = box.seal(std::string(SecretBox::kMaxPlainBytes + 1, 'x'), kName);
  EXPECT_EQ(sealed.error().code(), ErrorCode::TooLarge);
}

}  // namespace
}  // namespace atl::auth
