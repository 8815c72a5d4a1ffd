#include "registry/reference.h"

#include <gmock/gmock.h>

#include "registry/challenge.h"

namespace atl::registry {
namespace {

TEST(RegistryReference, HostRepositoryTagAndDigest) {
  auto plain = parse_reference("ghcr.io/owner/name:1.0");
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_EQ(plain->host, "ghcr.io");
  EXPECT_EQ(plain->repository, "owner/name");
  EXPECT_EQ(plain->selector(), "1.0");
  EXPECT_EQ(parse_reference("localhost:5000/x")->selector(), "latest");
  std::string digest = "sha256:" + std::string(64, 'a');
  EXPECT_EQ(parse_reference("localhost:5000/x:1@" + digest)->selector(), digest);
}

TEST(RegistryReference, DockersOwnNames) {
  auto debian = parse_reference("docker.io/debian:12");
  ASSERT_TRUE(debian);
  EXPECT_EQ(debian->host, "registry-1.docker.io");
  EXPECT_EQ(debian->repository, "library/debian");
  EXPECT_EQ(parse_reference("docker.io/a/b")->repository, "a/b");
}

TEST(RegistryReference, WhatCouldBeAPathOrAQueryIsRefused) {
  for (const char* text : {"",
                           "debian",
                           "debian:12",
                           "./x.io/y",
                           "/x.io/y",
                           "x.io/",
                           "x.io/../y",
                           "x.io/a/../b",
                           "x.io/A",
                           "x.io/a?b",
                           "x.io/a%2f",
                           "x.io/a b",
                           "x.io/a:",
                           "x.io/a:b/c",
                           "x.io/a:-b",
                           "x.io/a@sha256:1",
                           "x.io/a@md5:1",
                           "x.io\r\n/a",
                           "user@x.io/a",
                           "x.io/a//b",
                           "x.io/-a"}) {
    auto parsed = parse_reference(text);
    EXPECT_FALSE(parsed.has_value()) << text;
    if (!parsed) EXPECT_EQ(parsed.error().code(), ErrorCode::InvalidArgument) << text;
  }
}

TEST(RegistryReference, OnlyThisHostNeedsNoEncryption) {
  for (const char* host :
       {"localhost", "localhost:5000", "127.0.0.1", "127.1.2.3:80", "[::1]:80"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
  }
  for (const char* host : {"localhost.evil.example", "127.0.0.1.evil.example", "evil.example",
                           "127evil.example", "10.0.0.1", "[::2]", "0.0.0.0"}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
}

TEST(RegistryChallenge, BearerNamesWhereTokensAre) {
  auto challenge = parse_challenge(
      R"(Bearer realm="https://auth.example/token",service="a b",scope="repository:x:pull")");
  ASSERT_TRUE(challenge) << challenge.error().message();
  EXPECT_EQ(challenge->scheme, Challenge::Scheme::Bearer);
  EXPECT_THAT(token_url(*challenge, ""),
              testing::AllOf(testing::StartsWith("https://auth.example/token?scope="),
                             testing::HasSubstr("service=a%20b")));
  EXPECT_EQ(parse_challenge("basic realm=x")->scheme, Challenge::Scheme::Basic);
  EXPECT_FALSE(parse_challenge("Bearer service=x"));
  EXPECT_FALSE(parse_challenge("Negotiate"));
}

TEST(RegistryChallenge, CredentialsAreEncoded) {
  EXPECT_EQ(basic_authorization({"alice", "secret"}), "Basic YWxpY2U6c2VjcmV0");
}

}  // namespace
}  // namespace atl::registry
