// A certificate authority for tests, made when it is asked for.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>

#include "http/blocking_socket.h"
#include "http/http_test_support.h"
#include "http/tls_context.h"

namespace atl::http::testing {

class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name = "Atoll Test CA")
      : key_(EVP_EC_gen("P-256"), EVP_PKEY_free), certificate_(X509_new(), X509_free) {
    X509* mine = certificate_.get();
    fill(mine, key_.get(), name, 365);
    X509_set_issuer_name(mine, X509_get_subject_name(mine));
    extend(mine, NID_basic_constraints, "critical,CA:TRUE");
    X509_sign(mine, key_.get(), EVP_sha256());
    write(ca_file(), mine);
  }

  std::string ca_file() const { return dir_.file("ca.pem"); }
  std::string file(const std::string& name) const { return dir_.file(name); }

  struct Leaf {
    std::string common_name = "leaf";
    std::string names = "DNS:localhost,IP:127.0.0.1";
    int days = 30;  // negative: it has expired
  };
  // Writes NAME.pem, the certificate with its chain, and NAME.key.
  TlsOptions issue(const std::string& name, const Leaf& leaf) const {
    std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
    fill(made.get(), key.get(), leaf.common_name, leaf.days);
    X509_set_issuer_name(made.get(), X509_get_subject_name(certificate_.get()));
    extend(made.get(), NID_subject_alt_name, leaf.names.c_str());
    X509_sign(made.get(), key_.get(), EVP_sha256());
    TlsOptions options;
    options.certificate_file = file(name + ".pem");
    options.key_file = file(name + ".key");
    write(options.certificate_file, made.get());
    FILE* out = fopen(options.key_file.c_str(), "we");
    PEM_write_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    fclose(out);
    return options;
  }
  TlsOptions issue(const std::string& name = "server") const { return issue(name, Leaf()); }

 private:
  static void fill(X509* certificate, EVP_PKEY* key, const std::string& name, int days) {
    static long serial = 1;
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    constexpr long kDay = 24 * 60 * 60;
    X509_gmtime_adj(X509_getm_notBefore(certificate), -100 * kDay);
    X509_gmtime_adj(X509_getm_notAfter(certificate), days * kDay);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  }
  static void extend(X509* certificate, int nid, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  static void write(const std::string& path, X509* certificate) {
    FILE* out = fopen(path.c_str(), "we");
    PEM_write_X509(out, certificate);
    fclose(out);
  }

  TempDir dir_;
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
  std::unique_ptr<X509, decltype(&X509_free)> certificate_;
};

// A server that speaks HTTPS on a loopback port (and plain HTTP on a Unix socket).
class TlsTestServer : public TestServer {
 public:
  explicit TlsTestServer(const std::function<void(Router&)>& routes,
                         const ServerOptions& options = ServerOptions())
      : TlsTestServer(routes, options, nullptr) {}
  TlsTestServer(const std::function<void(Router&)>& routes, const ServerOptions& options,
                std::shared_ptr<TlsContext> tls)
      : TestServer(routes, options), tls_(std::move(tls)) {
    if (!tls_) tls_ = *TlsContext::create(authority_.issue());
    run([this] { port_ = *server().listen_tcp("127.0.0.1", 0, tls_); });
  }

  const TestAuthority& authority() const { return authority_; }
  TlsContext& tls() { return *tls_; }
  uint16_t port() const { return port_; }
  std::string url(const std::string& host = "localhost") const {
    return "https://" + host + ":" + std::to_string(port_);
  }
  ClientOptions trusting() const {
    ClientOptions options;
    options.ca_file = authority_.ca_file();
    options.io_timeout = std::chrono::milliseconds(kPatienceMs);
    return options;
  }
  Client secure_client() const { return std::move(*Client::create(url(), trusting())); }
  // Bytes in the clear to the port that expects TLS.
  RawConnection connect_tcp() const {
    auto endpoint = *Endpoint::parse("http://127.0.0.1:" + std::to_string(port_));
    auto socket = *BlockingSocket::connect(endpoint, std::chrono::milliseconds(kPatienceMs));
    return RawConnection(UniqueFd(::dup(socket.fd())));
  }

 private:
  TestAuthority authority_;
  std::shared_ptr<TlsContext> tls_;
  uint16_t port_ = 0;
};

}  // namespace atl::http::testing
