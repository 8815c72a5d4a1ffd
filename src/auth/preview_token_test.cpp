#include "auth/preview_token.h"

#include <gtest/gtest.h>

#include <array>

namespace atl::auth {
namespace {

SecretKey key_of(uint8_t fill) {
  std::array<uint8_t, SecretKey::kSize> bytes;
  bytes.fill(fill);
  return SecretKey(bytes);
}

const PreviewGrant kGrant{
    .link = "pv-0123", .sandbox = "sandbox-1", .generation = "g1", .port = 3000};
constexpr int64_t kNow = 1'000'000;

PreviewVerdict check(const std::string& token, const PreviewGrant& grant = kGrant) {
  return check_preview_token(token, key_of('k'), grant, PreviewPlace::Url, kNow);
}

TEST(PreviewToken, IsGoodUntilItExpires) {
  std::string token = preview_token(key_of('k'), kGrant, PreviewPlace::Url, kNow + 1);
  EXPECT_EQ(check(token), PreviewVerdict::Good);
  EXPECT_EQ(link_of_preview_token(token), "pv-0123");
  std::string old = preview_token(key_of('k'), kGrant, PreviewPlace::Url, kNow);
  EXPECT_EQ(check(old), PreviewVerdict::Expired);
}

TEST(PreviewToken, IsForOneLinkSandboxGenerationPortAndPlace) {
  std::string token = preview_token(key_of('k'), kGrant, PreviewPlace::Url, kNow + 60);
  for (auto change : {+[](PreviewGrant& grant) { grant.link = "pv-0124"; },
                      +[](PreviewGrant& grant) { grant.sandbox = "sandbox-2"; },
                      +[](PreviewGrant& grant) { grant.generation = "g2"; },
                      +[](PreviewGrant& grant) { grant.port = 3001; }}) {
    PreviewGrant other = kGrant;
    change(other);
    EXPECT_EQ(check(token, other), PreviewVerdict::Wrong);
  }
  std::string cookie = preview_token(key_of('k'), kGrant, PreviewPlace::Cookie, kNow + 60);
  EXPECT_EQ(check(cookie), PreviewVerdict::Wrong);
  EXPECT_EQ(check(preview_token(key_of('x'), kGrant, PreviewPlace::Url, kNow + 60)),
            PreviewVerdict::Wrong);
}

TEST(PreviewToken, CannotBeChanged) {
  std::string token = preview_token(key_of('k'), kGrant, PreviewPlace::Url, kNow + 60);
  for (size_t i = 0; i < token.size(); i++) {
    std::string changed = token;
    changed[i] = changed[i] == '1' ? '2' : '1';
    EXPECT_EQ(check(changed), PreviewVerdict::Wrong) << changed;
  }
  for (const char* text : {"", "pv-", "pv-0123", "pv-0123.u", "pv-0123.u1", "pv-0123.u.x",
                           "pv-0123.u99999999999999999999.x", "eyJ.eyJ.sig"}) {
    EXPECT_EQ(check(text), PreviewVerdict::Wrong) << text;
  }
}

TEST(TrafficToken, DiffersByGeneration) {
  std::string token = traffic_token(key_of('k'), "sandbox-1", "g1");
  EXPECT_EQ(token, traffic_token(key_of('k'), "sandbox-1", "g1"));
  EXPECT_NE(token, traffic_token(key_of('k'), "sandbox-1", "g2"));
  EXPECT_NE(token, traffic_token(key_of('k'), "sandbox-1g", "1"));
}

}  // namespace
}  // namespace atl::auth
