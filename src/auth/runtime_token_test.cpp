#include "auth/runtime_token.h"

#include <gtest/gtest.h>

namespace atl::auth {
namespace {

TEST(RuntimeToken, IsTheSameForTheSameLifeOfASandbox) {
  SecretKey key = SecretKey::random();
  std::string token = runtime_token(key, "web", "g1");
  EXPECT_EQ(token.size(), 46u);
  EXPECT_TRUE(token.starts_with("rt-"));
  EXPECT_EQ(token, runtime_token(key, "web", "g1"));
  EXPECT_TRUE(is_runtime_token(token, key, "web", "g1"));
}

TEST(RuntimeToken, EndsWithTheGenerationAndOpensNoOtherSandbox) {
  SecretKey key = SecretKey::random();
  std::string token = runtime_token(key, "web", "g1");
  EXPECT_FALSE(is_runtime_token(token, key, "web", "g2"));
  EXPECT_FALSE(is_runtime_token(token, key, "web2", "g1"));
  EXPECT_FALSE(is_runtime_token(token, SecretKey::random(), "web", "g1"));
}

TEST(RuntimeToken, SandboxAndGenerationDoNotRunIntoEachOther) {
  SecretKey key = SecretKey::random();
  EXPECT_NE(runtime_token(key, "web", "1g"), runtime_token(key, "web1", "g"));
  EXPECT_NE(runtime_token(key, "", "1:a"), runtime_token(key, "1", ":a"));
}

TEST(RuntimeToken, EveryOtherTextIsRefused) {
  SecretKey key = SecretKey::random();
  std::string token = runtime_token(key, "web", "g1");
  EXPECT_FALSE(is_runtime_token("", key, "web", "g1"));
  EXPECT_FALSE(is_runtime_token(token + "A", key, "web", "g1"));
  for (size_t i = 0; i < token.size(); i++) {
    EXPECT_FALSE(is_runtime_token(token.substr(0, i), key, "web", "g1"));
    std::string altered = token;
    altered[i] = altered[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(is_runtime_token(altered, key, "web", "g1"));
  }
}

}  // namespace
}  // namespace atl::auth
