#include "auth/digest.h"

#include <gtest/gtest.h>

#include <vector>

namespace atl::auth {
namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

TEST(Digest, Sha256OfTheStandardsExample) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(as_text(sha256("abc")), from_hex(sha256_hex("abc")));
}

TEST(Digest, HmacDependsOnKeyAndMessage) {
  std::array<uint8_t, 32> bytes{};
  SecretKey zero(bytes);
  EXPECT_EQ(as_text(hmac_sha256(zero, "")),
            from_hex("b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"));
  EXPECT_NE(hmac_sha256(zero, "a"), hmac_sha256(zero, "b"));
  EXPECT_NE(hmac_sha256(zero, "a"), hmac_sha256(SecretKey::random(), "a"));
}

TEST(Digest, HkdfOfTheRfcsExamples) {
  std::vector<uint8_t> out(42);
  std::string secret(22, '\x0b');
  hkdf_sha256({.secret = secret,
               .salt = from_hex("000102030405060708090a0b0c"),
               .info = from_hex("f0f1f2f3f4f5f6f7f8f9")},
              out);
  EXPECT_EQ(as_text(out), from_hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5b"
                                   "f34007208d5b887185865"));
  hkdf_sha256({.secret = secret, .salt = "", .info = ""}, out);
  EXPECT_EQ(as_text(out), from_hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2"
                                   "d9d201395faa4b61a96c8"));
}

TEST(Digest, SameSecretComparesSizeAndBytes) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_TRUE(same_secret("", ""));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "abcd"));
}

TEST(SecretKey, AMoveLeavesNothingBehind) {
  SecretKey key = SecretKey::random();
  SecretKey copy = key.copy();
  SecretKey moved = std::move(key);
  EXPECT_EQ(as_text(moved.bytes()), as_text(copy.bytes()));
  // NOLINTNEXTLINE(bugprone-use-after-move)
  EXPECT_EQ(as_text(key.bytes()), std::string(32, '\0'));
}

TEST(SecretBytes, HoldsTextOfAnySize) {
  SecretBytes bytes("hush");
  SecretBytes moved = std::move(bytes);
  EXPECT_EQ(moved.text(), "hush");
  EXPECT_EQ(SecretBytes("").size(), 0u);
}

}  // namespace
}  // namespace atl::auth
