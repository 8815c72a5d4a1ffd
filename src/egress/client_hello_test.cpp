#include "egress/client_hello.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "egress/http_relay.h"
#include "egress/redactor.h"

namespace atl::egress {
namespace {

std::string hello_for(const char* name) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL* ssl = SSL_new(context);
  BIO* out = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
  if (name != nullptr) SSL_set_tlsext_host_name(ssl, name);
  SSL_connect(ssl);
  char* data = nullptr;
  long size = BIO_get_mem_data(out, &data);
  std::string bytes(data, static_cast<size_t>(size));
  SSL_free(ssl);
  SSL_CTX_free(context);
  return bytes;
}

TEST(ClientHello, NamesItsHostOnceItIsWhole) {
  std::string bytes = hello_for("api.example.org");
  for (size_t size = 0; size < bytes.size(); size++) {
    ASSERT_EQ(read_client_hello(std::string_view(bytes).substr(0, size)).state,
              ClientHello::State::Incomplete);
  }
  ClientHello hello = read_client_hello(bytes);
  EXPECT_EQ(hello.state, ClientHello::State::Whole);
  EXPECT_EQ(hello.server_name, "api.example.org");
}

TEST(ClientHello, IsPutTogetherFromSeveralRecords) {
  std::string bytes = hello_for("api.example.org");
  std::string handshake = bytes.substr(5), split;
  for (size_t at = 0; at < handshake.size(); at += 50) {
    std::string part = handshake.substr(at, 50);
    split += std::string("\x16\x03\x01\x00", 4) + static_cast<char>(part.size()) + part;
  }
  EXPECT_EQ(read_client_hello(split).server_name, "api.example.org");
}

TEST(ClientHello, MayNameNobodyOrBeSomethingElse) {
  EXPECT_EQ(read_client_hello(hello_for(nullptr)).server_name, "");
  EXPECT_EQ(read_client_hello(hello_for(nullptr)).state, ClientHello::State::Whole);
  EXPECT_EQ(read_client_hello("GET / HTTP/1.1").state, ClientHello::State::NotTls);
  EXPECT_EQ(read_client_hello("\x16\x02xxxxxxxxxx").state, ClientHello::State::NotTls);
}

TEST(FirstBytes, OfRequests) {
  EXPECT_EQ(looks_like_http("GET / HTTP/1.1"), HttpStart::Yes);
  EXPECT_EQ(looks_like_http("PO"), HttpStart::Unclear);
  EXPECT_EQ(looks_like_http("SSH-2.0-x"), HttpStart::No);
  EXPECT_EQ(looks_like_http("EHLO x"), HttpStart::No);
}

TEST(Redactor, HidesValuesHoweverTheyAreCut) {
  std::vector<std::string> values = {"secret", "other-value"};
  std::string text = "a secret and other-value, secretsecret, secre";
  for (size_t size = 1; size < text.size(); size++) {
    Redactor redactor(values);
    std::string out;
    for (size_t at = 0; at < text.size(); at += size) out += redactor.feed(text.substr(at, size));
    out += redactor.finish();
    EXPECT_EQ(out, "a ****** and ***********, ************, secre") << size;
  }
}

}  // namespace
}  // namespace atl::egress
