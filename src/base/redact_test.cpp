#include "base/redact.h"

#include <gtest/gtest.h>

namespace atl {
namespace {

TEST(SecretNames, AreFoundByTheirWords) {
  for (const char* name : {"authorization", "Authorization", "token", "key", "api_key", "apiKey",
                           "x-api-key", "APIKEY", "client-secret", "PASSWORD", "db_password",
                           "Set-Cookie", "runtimeToken", "tls.key", "cookies"}) {
    EXPECT_TRUE(names_secret(name)) << name;
  }
  for (const char* name : {"", "error", "sandbox", "monkey", "keyboard", "tokenizer", "secretary",
                           "path", "url", "hotkeyed"}) {
    EXPECT_FALSE(names_secret(name)) << name;
  }
}

struct Case {
  const char* text;
  const char* shown;
};

class Redact : public testing::TestWithParam<Case> {};

TEST_P(Redact, HidesWhatLooksLikeACredential) {
  EXPECT_EQ(redact(GetParam().text), GetParam().shown);
}

INSTANTIATE_TEST_SUITE_P(
    Keys, Redact,
    testing::Values(Case{"sk-atoll-0123456789abcdef", "[redacted]"},
                    Case{"bad key 'sk-atoll-0123456789abcdef'; ask", "bad key '[redacted]'; ask"},
                    Case{"rt-0123456789abcdef0123 and sk-ABCDEFGH_1", "[redacted] and [redacted]"},
                    Case{"x-sk-0123456789", "x-[redacted]"},
                    Case{"sandbox-636c496fdd9a", "sandbox-636c496fdd9a"},
                    Case{"start-0123456789 task-0123456789", "start-0123456789 task-0123456789"},
                    Case{"sk-learn", "sk-learn"}, Case{"", ""}));

INSTANTIATE_TEST_SUITE_P(
    WebTokens, Redact,
    testing::Values(Case{"got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln-_x here",
                         "got [redacted] here"},
                    Case{"eyJ", "eyJ"}, Case{"keyJhbGciOiJIUzI1NiJ9", "keyJhbGciOiJIUzI1NiJ9"}));

INSTANTIATE_TEST_SUITE_P(
    Headers, Redact,
    testing::Values(Case{"Authorization: Bearer abcdefgh12", "Authorization: Bearer [redacted]"},
                    Case{"BEARER\tx bearer a+b/c=de~f", "BEARER\tx bearer [redacted]"},
                    Case{"a bearer token is missing", "a bearer token is missing"}));

INSTANTIATE_TEST_SUITE_P(
    Values, Redact,
    testing::Values(Case{"/v1/ws?token=abc&cols=80", "/v1/ws?token=[redacted]&cols=80"},
                    Case{"password=\"two words\" x", "password=\"[redacted]\" x"},
                    Case{R"({"api_key":"abc","name":"web"})",
                         R"({"api_key":"[redacted]","name":"web"})"},
                    Case{"DB_PASSWORD=hunter2", "DB_PASSWORD=[redacted]"}, Case{"key=", "key="},
                    Case{"monkey=1", "monkey=1"},
                    Case{"tls.key: open /etc/x: not found", "tls.key: open /etc/x: not found"}));

INSTANTIATE_TEST_SUITE_P(
    Urls, Redact,
    testing::Values(Case{"https://me:pass@host/x", "https://me:[redacted]@host/x"},
                    Case{"https://ghp_abc@host/x", "https://[redacted]@host/x"},
                    Case{"http://127.0.0.1:7777/a@b", "http://127.0.0.1:7777/a@b"}));

}  // namespace
}  // namespace atl
