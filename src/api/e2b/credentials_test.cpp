#include "api/e2b/credentials.h"

#include <gtest/gtest.h>

namespace atl::api::e2b {
namespace {

TEST(E2bKeys, ComeBackAsTheyWere) {
  EXPECT_EQ(wrap_key("sk-1"), "e2b_736b2d31");
  EXPECT_EQ(unwrap_key("e2b_736b2d31"), "sk-1");
}

TEST(E2bKeys, RefuseWhatIsNoWrappedKey) {
  for (const char* text : {"", "e2b_", "e2b_7", "e2b_7G", "e2b_7B", "sk-1", "E2B_736b"}) {
    EXPECT_FALSE(unwrap_key(text)) << text;
  }
}

// The text that E2B's packages hash, with its digest computed elsewhere.
TEST(E2bSignatures, AreThoseOfTheClients) {
  SignedPath plain{.path = "/a", .operation = "read", .user = "user", .expiration = ""};
  EXPECT_EQ(sign(plain, "token"), "v1_MTo2xowazkHy1MgGwYBHxr+gIN82G3dLPTD2iJqUjig");
  SignedPath until{.path = "/a", .operation = "write", .user = "", .expiration = "17"};
  EXPECT_EQ(sign(until, "token"), "v1_S+vTHES1OjsmNSliN7mFsb+kIyY9taD8ZySFh3MeUc8");
}

http::Request request_with(http::Headers headers, std::string path = "/") {
  http::Request request;
  request.headers = std::move(headers);
  request.path = std::move(path);
  return request;
}

TEST(E2bHosts, NameSandboxes) {
  EXPECT_TRUE(names_sandbox(request_with({{"Host", "49983-sandbox-1.example.org"}})));
  EXPECT_TRUE(names_sandbox(request_with({{"E2b-Sandbox-Id", "sb-1"}})));
  EXPECT_FALSE(names_sandbox(request_with({{"Host", "localhost:7777"}})));
  EXPECT_FALSE(names_sandbox(request_with({{"Host", "127.0.0.1:7777"}})));
  EXPECT_FALSE(names_sandbox(request_with({{"Host", "my-host.example.org"}})));
  EXPECT_FALSE(names_sandbox(request_with({{"Host", "10-0-0-5.example.org"}})));
  EXPECT_FALSE(names_sandbox(request_with({{"Host", "-x.example.org"}})));
  EXPECT_FALSE(names_sandbox(request_with({}, "/files")));
}

}  // namespace
}  // namespace atl::api::e2b
