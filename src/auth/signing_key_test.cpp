#include "auth/signing_key.h"

#include <gtest/gtest.h>

#include "auth/digest.h"
#include "base/base64url.h"
#include "http/json.h"

namespace atl::auth {
namespace {

// RFC 8037, appendix A.
SigningKey rfc_key() {
  std::string seed = *base64url_decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A");
  return SigningKey::from_seed(
      SecretKey(SecretKey::Bytes(reinterpret_cast<const uint8_t*>(seed.data()), 32)));
}

TEST(SigningKey, HasTheRfcsPublicKeyAndThumbprint) {
  EXPECT_EQ(base64url_encode(rfc_key().public_bytes()),
            "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
  EXPECT_EQ(rfc_key().kid(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

TEST(SigningKey, SignsAsTheRfcDoes) {
  constexpr std::string_view kMessage = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
  std::string signature = rfc_key().sign(kMessage);
  EXPECT_EQ(base64url_encode(signature),
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt"
            "9g7sVvpAr_MuM0KAg");
  EXPECT_TRUE(rfc_key().verify_key().verify(kMessage, signature));
}

TEST(SigningKey, EveryAlteredBitOfASignatureIsNoticed) {
  SigningKey key = SigningKey::generate();
  VerifyKey check = key.verify_key();
  const std::string signature = key.sign("message");
  for (size_t bit = 0; bit < signature.size() * 8; bit++) {
    std::string altered = signature;
    altered[bit / 8] = static_cast<char>(altered[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(check.verify("message", altered)) << bit;
  }
  EXPECT_FALSE(check.verify("messagf", signature));
  EXPECT_FALSE(SigningKey::generate().verify_key().verify("message", signature));
}

// S and S + L sign the same equation; only the smaller may pass, or tokens would have twins.
TEST(SigningKey, ASignatureHasNoTwin) {
  constexpr std::array<uint8_t, 32> kOrder = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,
                                              0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
                                              0,    0,    0,    0,    0,    0,    0,    0,
                                              0,    0,    0,    0,    0,    0,    0,    0x10};
  SigningKey key = SigningKey::generate();
  std::string signature = key.sign("message");
  unsigned carry = 0;
  for (size_t i = 0; i < kOrder.size(); i++) {
    carry += static_cast<uint8_t>(signature[32 + i]) + unsigned{kOrder[i]};
    signature[32 + i] = static_cast<char>(carry & 0xFF);
    carry >>= 8;
  }
  EXPECT_FALSE(key.verify_key().verify("message", signature));
}

TEST(SigningKey, AnotherLengthIsNoKeyAndNoSignature) {
  EXPECT_FALSE(VerifyKey::from_public(std::string(31, 'k')));
  EXPECT_FALSE(VerifyKey::from_public(std::string(33, 'k')));
  SigningKey key = SigningKey::generate();
  EXPECT_FALSE(key.verify_key().verify("m", key.sign("m").substr(0, 63)));
  EXPECT_FALSE(key.verify_key().verify("m", key.sign("m") + '\0'));
  EXPECT_FALSE(key.verify_key().verify("m", ""));
}

TEST(KeySet, FindsByThumbprintAndPublishesOnlyPublicParts) {
  SigningKey now = SigningKey::generate(), before = SigningKey::generate();
  KeySet keys;
  EXPECT_EQ(keys.jwks_json(), R"({"keys":[]})");
  keys.add(now.verify_key());
  keys.add(before.verify_key());
  EXPECT_EQ(keys.find(before.kid())->kid(), before.kid());
  EXPECT_EQ(keys.find("other"), nullptr);
  EXPECT_EQ(keys.find(""), nullptr);
  auto document = http::JsonDocument::parse(keys.jwks_json());
  ASSERT_TRUE(document);
  http::JsonObjectReader reader(**document->object());
  auto published = reader.object_array("keys");
  ASSERT_EQ(published->size(), 2u);
  http::JsonObjectReader& jwk = published->front();
  EXPECT_EQ(*jwk.require_string("kty"), "OKP");
  EXPECT_EQ(*jwk.require_string("crv"), "Ed25519");
  EXPECT_EQ(*jwk.require_string("alg"), "EdDSA");
  EXPECT_EQ(*jwk.require_string("use"), "sig");
  EXPECT_EQ(*jwk.require_string("kid"), now.kid());
  EXPECT_EQ(*jwk.require_string("x"), base64url_encode(now.public_bytes()));
  EXPECT_TRUE(jwk.finish()) << "nothing else, above all no \"d\"";
}

}  // namespace
}  // namespace atl::auth
