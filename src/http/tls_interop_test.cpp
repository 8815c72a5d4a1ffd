// Our HTTPS with other people's clients.
#include <gmock/gmock.h>

#include <cstdio>

#include "http/tls_test_support.h"

namespace atl::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::TlsTestServer;

bool have(const std::string& program) {
  return system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

// Standard output and standard error together.
std::string output_of(const std::string& command) {
  FILE* pipe = popen(("timeout 20 " + command + " 2>&1").c_str(), "re");
  std::string out;
  char block[4096];
  for (size_t got = 0; (got = fread(block, 1, sizeof(block), pipe)) > 0;) out.append(block, got);
  pclose(pipe);
  return out;
}

class TlsCurl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!have("curl")) GTEST_SKIP() << "curl is not installed";
  }
  std::string curl(const std::string& arguments) {
    return output_of("curl -sS --noproxy '*' --cacert " + server_.authority().ca_file() + " " +
                     arguments);
  }
  TlsTestServer server_{testing::add_basic_routes};
};

TEST_F(TlsCurl, GetsOverHttpOneAlthoughItWouldSpeakTwo) {
  std::string out = curl("-v " + server_.url() + "/hello");
  EXPECT_THAT(out, HasSubstr("hello"));
  EXPECT_THAT(out, HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(out, HasSubstr("TLSv1.3"));
}

TEST_F(TlsCurl, SendsBodiesWithEitherVersion) {
  std::string file = server_.authority().file("body");
  FILE* out = fopen(file.c_str(), "we");
  for (int i = 0; i < 900'000; i++) fputc('a' + i % 26, out);
  fclose(out);
  for (const char* version : {"--tls-max 1.2", "--tlsv1.3"}) {
    std::string answer =
        curl(std::string(version) + " --data-binary @" + file + " " + server_.url() + "/echo");
    EXPECT_EQ(answer.size(), 900'000u) << answer.substr(0, 200);
  }
}

TEST_F(TlsCurl, RefusesAServerItDoesNotTrust) {
  EXPECT_THAT(output_of("curl -sS --noproxy '*' " + server_.url() + "/hello"),
              HasSubstr("certificate"));
}

class TlsOpenssl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!have("openssl")) GTEST_SKIP() << "openssl is not installed";
  }
  static std::string s_client(const TlsTestServer& server, const std::string& arguments) {
    std::string at = "127.0.0.1:" + std::to_string(server.port());
    return output_of("sh -c 'echo | openssl s_client -brief -verify_return_error -CAfile " +
                     server.authority().ca_file() + " -connect " + at + " -servername localhost " +
                     arguments + "'");
  }
};

TEST_F(TlsOpenssl, NegotiatesHttpOneAndNothingElse) {
  TlsTestServer server(testing::add_basic_routes);
  EXPECT_THAT(s_client(server, "-alpn h2,http/1.1"), HasSubstr("CONNECTION ESTABLISHED"));
  EXPECT_THAT(s_client(server, "-alpn h2"), HasSubstr("no application protocol"));
  EXPECT_THAT(s_client(server, ""), HasSubstr("Verification: OK"));
}

TEST_F(TlsOpenssl, OldVersionsAreRefused) {
  TlsTestServer server(testing::add_basic_routes);
  EXPECT_THAT(s_client(server, "-tls1_2"), HasSubstr("TLSv1.2"));
  EXPECT_THAT(s_client(server, "-tls1_1 -cipher DEFAULT@SECLEVEL=0"),
              Not(HasSubstr("CONNECTION ESTABLISHED")));
}

TEST_F(TlsOpenssl, NewestVersionCanBeDemanded) {
  testing::TestAuthority authority;
  TlsOptions options = authority.issue();
  options.min_version = TlsOptions::Version::Tls13;
  TlsTestServer server(testing::add_basic_routes, ServerOptions(), *TlsContext::create(options));
  std::string trust = "-CAfile " + authority.ca_file();
  EXPECT_THAT(s_client(server, trust + " -tls1_3"), HasSubstr("TLSv1.3"));
  EXPECT_THAT(s_client(server, trust + " -tls1_2"), Not(HasSubstr("CONNECTION ESTABLISHED")));
}

}  // namespace
}  // namespace atl::http
