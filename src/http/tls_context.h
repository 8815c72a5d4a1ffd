#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "http/tls_session.h"

namespace atl::http {

struct FreeSslContext {
  void operator()(ssl_ctx_st* context) const;
};
using SslContext = std::unique_ptr<ssl_ctx_st, FreeSslContext>;

struct TlsOptions {
  enum class Version { Tls12, Tls13 };

  TlsOptions() = default;

  std::string certificate_file;  // PEM: the server's own first, then its chain
  std::string key_file;          // PEM, not encrypted
  Version min_version = Version::Tls12;
};

// A server's certificate and key, shared by its listeners. On the server's thread.
class TlsContext {
 public:
  // Errors name the file: NotFound or PermissionDenied where it cannot be opened, InvalidArgument
  // where it does not hold what it should.
  static Result<std::shared_ptr<TlsContext>> create(TlsOptions options);

  // Reads the files again, for connections to come. On failure the present certificate stays.
  Result<void> reload();
  std::chrono::system_clock::time_point expires_at() const { return expires_at_; }

  Result<std::unique_ptr<TlsSession>> accept(int fd) const;

 private:
  explicit TlsContext(TlsOptions options) : options_(std::move(options)) {}

  TlsOptions options_;
  SslContext context_;
  std::chrono::system_clock::time_point expires_at_{};
};

// Whom a client believes: the system's certificate authorities, or only those in a PEM file. Safe
// to share between threads.
class TlsClientContext {
 public:
  static Result<std::shared_ptr<TlsClientContext>> create(const std::string& ca_file = "");

  // The handshake is yet to come; it fails with Unauthenticated unless `host`, a name or an
  // address, is in the server's certificate.
  Result<std::unique_ptr<TlsSession>> connect(int fd, const std::string& host) const;

 private:
  explicit TlsClientContext(SslContext context) : context_(std::move(context)) {}
  SslContext context_;
};

}  // namespace atl::http
