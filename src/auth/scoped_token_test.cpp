#include "auth/scoped_token.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>

#include "auth/jwt.h"
#include "auth/jwt_test_support.h"

namespace atl::auth {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

constexpr int64_t kNowMs = 1'767'323'045'678;
constexpr int64_t kNow = kNowMs / 1000;
constexpr int64_t kMinute = 60;

class ScopedTokens : public testing::Test {
 protected:
  MintedToken mint(std::optional<int64_t> minutes = {}) const {
    return mint_scoped_token(key_,
                             {.tenant = "acme",
                              .sandbox = "sbx-1",
                              .generation = "7",
                              .scope = TokenScope::ReadOnly,
                              .session = "term-1",
                              .ttl_minutes = minutes},
                             kNowMs)
        .value();
  }
  json::object claims() const {
    return {{"iss", "atoll"}, {"aud", "atoll-runtime"},   {"sub", "acme"},    {"sbx", "sbx-1"},
            {"gen", "7"},     {"scope", "session"},       {"typ", "sidecar"}, {"jti", "j"},
            {"iat", kNow},    {"exp", kNow + 5 * kMinute}};
  }
  std::string why(const json::object& claims, int64_t now_ms = kNowMs) const {
    auto token =
        verify_scoped_token(sign_jwt(key_, json::serialize(claims)).value(), keys_, now_ms);
    if (token) return "";
    EXPECT_EQ(token.error().code(), ErrorCode::Unauthenticated);
    return token.error().message();
  }
  // With one claim put in place of the right one.
  std::string why_with(std::string_view name, json::value value) const {
    json::object changed = claims();
    changed[name] = std::move(value);
    return why(changed);
  }

  SigningKey key_ = SigningKey::generate();
  KeySet keys_ = key_set(key_);
};

TEST_F(ScopedTokens, SayWhatTheyWereMadeFor) {
  MintedToken minted = mint();
  auto token = verify_scoped_token(minted.text, keys_, kNowMs);
  ASSERT_TRUE(token) << token.error().message();
  EXPECT_EQ(token->tenant, "acme");
  EXPECT_EQ(token->sandbox, "sbx-1");
  EXPECT_EQ(token->generation, "7");
  EXPECT_EQ(token->scope, TokenScope::ReadOnly);
  EXPECT_EQ(token->session, "term-1");
  EXPECT_EQ(token->id, minted.token.id);
  EXPECT_EQ(token->issued_at_ms, kNow * 1000);
  EXPECT_EQ(token->expires_at_ms, (kNow + 5 * kMinute) * 1000);
  EXPECT_EQ(token->expires_at_ms, minted.token.expires_at_ms);
  EXPECT_NE(mint().token.id, mint().token.id);
}

TEST_F(ScopedTokens, LifetimeIsClamped) {
  auto minutes = [&](int64_t asked) {
    ScopedToken token = mint(asked).token;
    return (token.expires_at_ms - token.issued_at_ms) / 60'000;
  };
  EXPECT_EQ(minutes(0), 1);
  EXPECT_EQ(minutes(-5), 1);
  EXPECT_EQ(minutes(3), 3);
  EXPECT_EQ(minutes(15), 15);
  EXPECT_EQ(minutes(16), 15);
  EXPECT_EQ(minutes(INT64_MAX), 15);
  EXPECT_EQ(minutes(INT64_MIN), 1);
}

TEST_F(ScopedTokens, EndOnTheSecondAndSaySo) {
  MintedToken minted = mint(1);
  EXPECT_TRUE(verify_scoped_token(minted.text, keys_, minted.token.expires_at_ms - 1));
  auto late = verify_scoped_token(minted.text, keys_, minted.token.expires_at_ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::Unauthenticated);
  EXPECT_EQ(late.error().message(), "the token has expired");
}

TEST_F(ScopedTokens, TheClaimsOfTheseTestsAreGood) { EXPECT_EQ(why(claims()), ""); }

TEST_F(ScopedTokens, EveryClaimButTheSessionIsRequired) {
  for (const char* name :
       {"iss", "aud", "sub", "sbx", "gen", "scope", "typ", "jti", "iat", "exp"}) {
    json::object without = claims();
    without.erase(name);
    EXPECT_NE(why(without), "") << name;
    EXPECT_NE(why_with(name, nullptr), "") << name;
  }
}

TEST_F(ScopedTokens, EveryClaimHasItsType) {
  for (const char* name : {"iss", "aud", "sub", "sbx", "gen", "scope", "typ", "jti", "sid"}) {
    EXPECT_NE(why_with(name, 1), "") << name;
    EXPECT_NE(why_with(name, true), "") << name;
    EXPECT_NE(why_with(name, json::array{"atoll"}), "") << name;
    EXPECT_NE(why_with(name, json::object{}), "") << name;
  }
  for (const char* name : {"iat", "exp", "nbf"}) {
    EXPECT_NE(why_with(name, json::string(std::to_string(kNow + kMinute))), "") << name;
    EXPECT_NE(why_with(name, static_cast<double>(kNow) + 60.5), "") << name;
    EXPECT_NE(why_with(name, true), "") << name;
    EXPECT_NE(why_with(name, json::array{kNow}), "") << name;
  }
}

TEST_F(ScopedTokens, NumbersHaveALimit) {
  for (const char* name : {"iat", "exp", "nbf"}) {
    EXPECT_NE(why_with(name, -1), "") << name;
    EXPECT_NE(why_with(name, INT64_MAX), "") << name;
    EXPECT_NE(why_with(name, INT64_MIN), "") << name;
    EXPECT_NE(why_with(name, UINT64_MAX), "") << name;
    EXPECT_NE(why_with(name, 1e300), "") << name;
  }
  for (const char* number : {"1e999", "-1e999", "99999999999999999999999999", "1E2", "NaN"}) {
    std::string payload = json::serialize(claims());
    payload.insert(payload.size() - 1, std::string(",\"nbf\":") + number);
    EXPECT_FALSE(verify_scoped_token(forge(key_, jose_header(key_), payload), keys_, kNowMs))
        << number;
  }
}

TEST_F(ScopedTokens, OtherIssuersAudiencesTypesAndScopesAreRefused) {
  EXPECT_THAT(why_with("iss", "Atoll"), HasSubstr("iss"));
  EXPECT_THAT(why_with("aud", "atoll"), HasSubstr("aud"));
  EXPECT_NE(why_with("typ", "read"), "");
  EXPECT_NE(why_with("scope", "admin"), "");
  EXPECT_NE(why_with("scope", "session project"), "");
  EXPECT_NE(why_with("role", "admin"), "") << "no claim is ignored";
}

TEST_F(ScopedTokens, NotBeforeTheirTime) {
  json::object later = claims();
  later["iat"] = kNow + 31;
  EXPECT_THAT(why(later), HasSubstr("not valid yet"));
  EXPECT_THAT(why_with("nbf", kNow + 31), HasSubstr("not valid yet"));
  EXPECT_EQ(why_with("nbf", kNow + 30), "") << "clocks may differ a little";
  EXPECT_EQ(why_with("nbf", kNow), "");
}

TEST_F(ScopedTokens, NoLifetimeThatIsNotGivenOut) {
  EXPECT_EQ(why_with("exp", kNow + 15 * kMinute), "");
  EXPECT_THAT(why_with("exp", kNow + 15 * kMinute + 1), HasSubstr("lifetime"));
  EXPECT_THAT(why_with("exp", 253402300799), HasSubstr("lifetime"));
  EXPECT_THAT(why_with("exp", kNow), HasSubstr("lifetime"));
}

TEST_F(ScopedTokens, AreForOneLifeOfOneSandbox) {
  ScopedToken token = mint().token;
  EXPECT_TRUE(token.check_target("sbx-1", "7"));
  EXPECT_EQ(token.check_target("sbx-2", "7").error().code(), ErrorCode::PermissionDenied);
  EXPECT_EQ(token.check_target("sbx-1", "8").error().code(), ErrorCode::Unauthenticated);
}

TEST_F(ScopedTokens, RequestsWithoutATargetAreRefused) {
  ScopedTokenRequest request{.tenant = "acme", .sandbox = "sbx-1", .generation = "7"};
  EXPECT_TRUE(mint_scoped_token(key_, request, kNowMs));
  request.session = "";
  EXPECT_EQ(mint_scoped_token(key_, request, kNowMs).error().field(), "session");
  request.sandbox = std::string(129, 'x');
  EXPECT_EQ(mint_scoped_token(key_, request, kNowMs).error().field(), "sandbox");
  request.tenant = "\xFF";
  EXPECT_EQ(mint_scoped_token(key_, request, kNowMs).error().field(), "tenant");
}

TEST(TokenScope, NamesReadBack) {
  for (TokenScope scope : {TokenScope::Session, TokenScope::Project, TokenScope::ReadOnly}) {
    EXPECT_EQ(parse_token_scope(to_string(scope)), scope);
  }
  EXPECT_FALSE(parse_token_scope(""));
  EXPECT_FALSE(parse_token_scope("Session"));
}

}  // namespace
}  // namespace atl::auth
