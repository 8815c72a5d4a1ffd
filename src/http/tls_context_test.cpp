#include "http/tls_context.h"

#include <gmock/gmock.h>

#include <fstream>

#include "http/tls_test_support.h"

namespace atl::http {
namespace {

using ::testing::HasSubstr;
using testing::TestAuthority;
using testing::TlsTestServer;

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(TlsContext, ErrorsNameTheFileAndWhatIsWrong) {
  TestAuthority authority;
  TlsOptions good = authority.issue();

  TlsOptions options = good;
  options.certificate_file = "/nowhere/cert.pem";
  auto missing = TlsContext::create(options);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::NotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("certificate: open /nowhere/cert.pem"));

  options = good;
  options.key_file = "/nowhere/key.pem";
  auto no_key = TlsContext::create(options);
  ASSERT_FALSE(no_key);
  EXPECT_EQ(no_key.error().code(), ErrorCode::NotFound);
  EXPECT_THAT(no_key.error().message(), HasSubstr("key: open /nowhere/key.pem"));

  options = good;
  options.key_file.clear();
  EXPECT_EQ(TlsContext::create(options).error().code(), ErrorCode::InvalidArgument);

  options = good;
  options.certificate_file = authority.file("garbage.pem");
  write_text(options.certificate_file, "not a certificate\n");
  auto garbage = TlsContext::create(options);
  ASSERT_FALSE(garbage);
  EXPECT_EQ(garbage.error().code(), ErrorCode::InvalidArgument);
  EXPECT_THAT(garbage.error().message(), HasSubstr("garbage.pem: no start line"));
}

TEST(TlsContext, KeyMustBelongToTheCertificate) {
  TestAuthority authority;
  TlsOptions options = authority.issue("one");
  options.key_file = authority.issue("two").key_file;
  auto mixed = TlsContext::create(options);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code(), ErrorCode::InvalidArgument);
  EXPECT_THAT(mixed.error().message(), HasSubstr("two.key: key values mismatch"));
}

TEST(TlsContext, EncryptedKeyIsRefusedWithoutAskingForAPassword) {
  TestAuthority authority;
  TlsOptions options = authority.issue();
  FILE* in = fopen(options.key_file.c_str(), "re");
  EVP_PKEY* key = PEM_read_PrivateKey(in, nullptr, nullptr, nullptr);
  fclose(in);
  FILE* out = fopen(options.key_file.c_str(), "we");
  char password[] = "secret";
  PEM_write_PrivateKey(out, key, EVP_aes_128_cbc(), reinterpret_cast<unsigned char*>(password),
                       sizeof(password) - 1, nullptr, nullptr);
  fclose(out);
  EVP_PKEY_free(key);
  auto encrypted = TlsContext::create(options);
  ASSERT_FALSE(encrypted);
  EXPECT_EQ(encrypted.error().code(), ErrorCode::InvalidArgument);
  EXPECT_THAT(encrypted.error().message(), HasSubstr("server.key: "));
}

TEST(TlsContext, KnowsWhenItsCertificateExpires) {
  TestAuthority authority;
  auto context = *TlsContext::create(authority.issue());
  auto left = context->expires_at() - std::chrono::system_clock::now();
  EXPECT_LT(left, std::chrono::hours(24 * 30 + 1));
  EXPECT_GT(left, std::chrono::hours(24 * 30 - 1));
}

TEST(TlsContext, ReloadedCertificateIsForNewConnections) {
  TestAuthority next_authority("Next CA");
  TlsTestServer server(testing::add_basic_routes);
  auto before = server.secure_client();
  ASSERT_EQ(before.request("GET", "/hello")->body, "hello");

  std::filesystem::path live(server.authority().file("server.pem"));
  TlsOptions renewed = next_authority.issue();
  std::filesystem::copy_file(renewed.certificate_file, live,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(renewed.key_file, server.authority().file("server.key"),
                             std::filesystem::copy_options::overwrite_existing);
  server.run([&] { ASSERT_TRUE(server.tls().reload()); });

  EXPECT_EQ(before.request("GET", "/hello")->body, "hello");  // on the connection it has
  EXPECT_FALSE(server.secure_client().request("GET", "/hello"));
  ClientOptions options;
  options.ca_file = next_authority.ca_file();
  EXPECT_EQ(Client::create(server.url(), options)->request("GET", "/hello")->body, "hello");
}

TEST(TlsContext, FailedReloadKeepsTheCertificate) {
  TlsTestServer server(testing::add_basic_routes);
  write_text(server.authority().file("server.pem"), "half a certif");
  server.run([&] {
    auto reloaded = server.tls().reload();
    ASSERT_FALSE(reloaded);
    EXPECT_THAT(reloaded.error().message(), HasSubstr("server.pem"));
  });
  EXPECT_EQ(server.secure_client().request("GET", "/hello")->body, "hello");
}

TEST(TlsClientContext, ErrorsNameTheFile) {
  auto missing = TlsClientContext::create("/nowhere/ca.pem");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::NotFound);
  TestAuthority authority;
  write_text(authority.file("empty.pem"), "");
  auto empty = TlsClientContext::create(authority.file("empty.pem"));
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message(), HasSubstr("empty.pem"));
  EXPECT_TRUE(TlsClientContext::create());
}

}  // namespace
}  // namespace atl::http
