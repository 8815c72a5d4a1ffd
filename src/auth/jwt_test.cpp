#include "auth/jwt.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <optional>

#include "auth/digest.h"
#include "auth/jwt_test_support.h"

namespace atl::auth {
namespace {

using testing::HasSubstr;

class Jwt : public testing::Test {
 protected:
  // Why the token is refused, or nothing.
  std::string why(std::string_view token) const {
    auto claims = verify_jwt(token, keys_);
    if (claims) return "";
    EXPECT_EQ(claims.error().code(), ErrorCode::Unauthenticated);
    return claims.error().message();
  }
  std::string with_header(const std::string& header) const { return forge(key_, header, "{}"); }
  std::string kid_member() const { return "\"kid\":\"" + key_.kid() + "\""; }

  SigningKey key_ = SigningKey::generate();
  KeySet keys_ = key_set(key_);
  std::string good_ = sign_jwt(key_, R"({"sub":"acme","n":1})").value();
};

TEST_F(Jwt, ClaimsComeBackAsTheyWereSigned) {
  auto claims = verify_jwt(good_, keys_);
  ASSERT_TRUE(claims) << claims.error().message();
  EXPECT_EQ(boost::json::serialize(claims->value()), R"({"sub":"acme","n":1})");
  EXPECT_EQ(why(with_header("{\"alg\":\"EdDSA\"," + kid_member() + "}")), "") << "typ is optional";
}

TEST_F(Jwt, AlgorithmIsPinned) {
  for (const char* alg : {"none", "None", "NONE", "nOnE", "HS256", "RS256", "ES256", "eddsa",
                          "EDDSA", "Ed25519", "EdDSA ", ""}) {
    std::string header = std::string("{\"alg\":\"") + alg + "\"," + kid_member() + "}";
    EXPECT_THAT(why(with_header(header)), HasSubstr("alg")) << alg;
    std::string unsigned_token = base64url_encode(header) + "." + base64url_encode("{}") + ".";
    EXPECT_THAT(why(unsigned_token), HasSubstr("alg")) << alg;
  }
  for (const char* alg : {"null", "1", "true", "[\"EdDSA\"]", "{\"EdDSA\":1}"}) {
    EXPECT_THAT(why(with_header(std::string("{\"alg\":") + alg + "," + kid_member() + "}")),
                HasSubstr("alg"));
  }
  EXPECT_THAT(why(with_header("{" + kid_member() + "}")), HasSubstr("alg"));
}

TEST_F(Jwt, ThePublicKeyIsNoHmacKey) {
  std::string bytes = key_.public_bytes();
  SecretKey shared(SecretKey::Bytes(reinterpret_cast<const uint8_t*>(bytes.data()), 32));
  for (const char* alg : {"HS256", "EdDSA"}) {
    std::string text = base64url_encode(std::string("{\"alg\":\"") + alg + "\",\"typ\":\"JWT\"," +
                                        kid_member() + "}") +
                       "." + base64url_encode(R"({"sub":"admin"})");
    EXPECT_NE(why(text + "." + base64url_encode(as_text(hmac_sha256(shared, text)))), "");
  }
}

TEST_F(Jwt, KeysAreFoundByExactNameOnly) {
  for (const char* kid : {"", "../../dev/null", "/dev/null", "' OR 1=1 --", "http://evil/jwks",
                          "file:///etc/passwd", "0", "*", "a\\u0000b"}) {
    EXPECT_THAT(why(with_header(std::string(R"({"alg":"EdDSA","kid":")") + kid + "\"}")),
                HasSubstr("unknown key"));
  }
  EXPECT_THAT(why(with_header(R"({"alg":"EdDSA","kid":")" + key_.kid() + "\\u0000\"}")),
              HasSubstr("unknown key"));
  for (const char* kid : {"null", "0", "[]", "{}"}) {
    EXPECT_THAT(why(with_header(std::string(R"({"alg":"EdDSA","kid":)") + kid + "}")),
                HasSubstr("kid"));
  }
  EXPECT_THAT(why(with_header(R"({"alg":"EdDSA"})")), HasSubstr("kid"));
}

TEST_F(Jwt, AnotherKeyUnderOurNameIsABadSignature) {
  EXPECT_THAT(why(forge(SigningKey::generate(), jose_header(key_), "{}")), HasSubstr("signature"));
  SigningKey foreign = SigningKey::generate();
  EXPECT_THAT(why(forge(foreign, jose_header(foreign), "{}")), HasSubstr("unknown key"));
  EXPECT_FALSE(verify_jwt(good_, KeySet()));
}

TEST_F(Jwt, HeadersMayNotBringTheirOwnKeysOrRules) {
  SigningKey own = SigningKey::generate();
  for (std::string more :
       {R"("crit":["exp"])", R"("crit":[])", R"("b64":false)", R"("jku":"https://evil/jwks")",
        R"("x5u":"https://evil/x")", R"("x5c":["AAAA"])", R"("cty":"JWT")", R"("zip":"DEF")",
        R"("enc":"A128GCM")", R"("p2c":1000000000)", R"("x":1)"}) {
    EXPECT_THAT(
        why(with_header("{\"alg\":\"EdDSA\",\"typ\":\"JWT\"," + kid_member() + "," + more + "}")),
        HasSubstr("header"))
        << more;
  }
  std::string jwk =
      "{\"alg\":\"EdDSA\"," + kid_member() + ",\"jwk\":" + own.verify_key().jwk_json() + "}";
  EXPECT_THAT(why(forge(own, jwk, "{}")), HasSubstr("header"));
}

TEST_F(Jwt, TypeIsJwtOrAbsent) {
  for (const char* type : {"\"at+jwt\"", "\"jwt\"", "\"JOSE\"", "null", "1", "\"\""}) {
    EXPECT_THAT(why(with_header("{\"alg\":\"EdDSA\",\"typ\":" + std::string(type) + "," +
                                kid_member() + "}")),
                HasSubstr("typ"));
  }
}

TEST_F(Jwt, DoubledMembersAreRefused) {
  EXPECT_NE(why(with_header("{\"alg\":\"none\",\"alg\":\"EdDSA\"," + kid_member() + "}")), "");
  EXPECT_NE(why(with_header("{\"alg\":\"EdDSA\"," + kid_member() + "," + kid_member() + "}")), "");
  EXPECT_NE(why(with_header("{\"alg\":\"EdDSA\",\"\\u0061lg\":\"none\"," + kid_member() + "}")),
            "");
  EXPECT_NE(why(forge(key_, jose_header(key_), R"({"sub":"a","sub":"b"})")), "");
}

TEST_F(Jwt, ASwappedPayloadIsABadSignature) {
  size_t first = good_.find('.'), second = good_.rfind('.');
  std::string swapped = good_.substr(0, first + 1) + base64url_encode(R"({"sub":"root","n":1})") +
                        good_.substr(second);
  EXPECT_THAT(why(swapped), HasSubstr("signature"));
  std::string other = sign_jwt(key_, R"({"sub":"other"})").value();
  EXPECT_THAT(why(good_.substr(0, second) + other.substr(other.rfind('.'))),
              HasSubstr("signature"));
}

TEST_F(Jwt, EveryCutAndEveryAddedByteIsRefused) {
  for (size_t size = 0; size < good_.size(); size++) {
    EXPECT_NE(why(good_.substr(0, size)), "") << size;
    EXPECT_NE(why(good_.substr(size + 1)), "") << size;
  }
  for (const char* more : {".", "=", "==", "A", "AA", "AAAA", "\n", " ", ".AAAA"}) {
    EXPECT_NE(why(good_ + more), "") << more;
    EXPECT_NE(why(more + good_), "") << more;
  }
  EXPECT_NE(why(good_ + std::string(1, '\0')), "");
}

// 64 bytes leave four spare bits in the last character: 15 other spellings of each signature.
TEST_F(Jwt, ATokenHasOneSpelling) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (size_t at = 0; at < good_.size(); at++) {
    std::string altered = good_;
    altered[at] = altered[at] == 'A' ? 'B' : 'A';
    EXPECT_NE(why(altered), "") << at;
  }
  for (char c : kAlphabet) {
    std::string altered = good_.substr(0, good_.size() - 1) + c;
    EXPECT_EQ(why(altered).empty(), c == good_.back()) << c;
  }
}

TEST_F(Jwt, OnlyBase64UrlOfJsonObjects) {
  for (const char* token : {"", ".", "..", "...", "a.b", "a.b.c", "a.b.c.d", "%.%.%", "e30.e30.e30",
                            "e30=.e30.AA", "\xFF\xFE.\x80.\x80"}) {
    EXPECT_NE(why(token), "") << token;
  }
  for (const char* payload : {"", "null", "[]", "1", "\"x\"", "{", "{}{}", "{} x",
                              "{\"a\":\"\xFF\"}", "\xEF\xBB\xBF{}", "{\"a\":1,}", "{'a':1}"}) {
    EXPECT_NE(why(forge(key_, jose_header(key_), payload)), "") << payload;
    EXPECT_NE(why(forge(key_, payload, "{}")), "") << payload;
  }
  std::string deep = std::string(200, '[') + std::string(200, ']');
  EXPECT_NE(why(forge(key_, jose_header(key_), "{\"a\":" + deep + "}")), "");
}

TEST_F(Jwt, SizeIsLimitedBothWays) {
  EXPECT_THAT(why(std::string(1 << 20, 'A')), HasSubstr("too long"));
  EXPECT_THAT(why(std::string(1 << 20, '.')), HasSubstr("too long"));
  EXPECT_THAT(why(good_ + std::string(kMaxTokenBytes, 'A')), HasSubstr("too long"));
  auto large = sign_jwt(key_, "{\"a\":\"" + std::string(kMaxTokenBytes, 'x') + "\"}");
  EXPECT_EQ(large.error().code(), ErrorCode::TooLarge);
}

TEST_F(Jwt, RefusalsRepeatNothingOfTheToken) {
  std::string header = R"({"alg":"<script>","kid":"<script>","<script>":"\n<script>"})";
  EXPECT_THAT(why(with_header(header)), testing::Not(HasSubstr("script")));
  header = R"({"alg":"EdDSA","kid":"k","<script>":1})";
  EXPECT_THAT(why(with_header(header)), testing::Not(HasSubstr("script")));
}

TEST_F(Jwt, ARotatedKeyIsHonouredWhileItIsListed) {
  SigningKey next = SigningKey::generate();
  keys_.add(next.verify_key());
  EXPECT_EQ(why(good_), "");
  EXPECT_EQ(why(sign_jwt(next, "{}").value()), "");
  EXPECT_FALSE(verify_jwt(good_, key_set(next)));
}

}  // namespace
}  // namespace atl::auth
