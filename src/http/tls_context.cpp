#include "http/tls_context.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <string_view>

#include "base/unique_fd.h"

namespace atl::http {
namespace {

constexpr std::string_view kProtocols = "\x08http/1.1";  // as ALPN writes a list

tl::unexpected<Error> no_context() {
  return fail(ErrorCode::ResourceExhausted, "no memory for TLS");
}

// OpenSSL's own errors do not say which file, nor tell a missing one from a broken one.
Result<void> check_readable(const std::string& what, const std::string& path) {
  if (path.empty()) return fail(ErrorCode::InvalidArgument, "no " + what + " file is given");
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return fail(Error::from_errno(errno, "open", path).context(what));
  return {};
}

tl::unexpected<Error> bad_file(const std::string& what, const std::string& path) {
  return fail(ErrorCode::InvalidArgument, what + " " + path + ": " + openssl_reason());
}

// Without it OpenSSL would ask for a password on the terminal.
int no_password(char*, int, int, void*) { return -1; }

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_length,
                    const unsigned char* offered, unsigned int offered_length, void*) {
  const auto* ours = reinterpret_cast<const unsigned char*>(kProtocols.data());
  int outcome = SSL_select_next_proto(const_cast<unsigned char**>(chosen), chosen_length, ours,
                                      kProtocols.size(), offered, offered_length);
  return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

void set_common(SSL_CTX* context, int min_version) {
  SSL_CTX_set_min_proto_version(context, min_version);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

Result<SslContext> load(const TlsOptions& options) {
  ATOLL_TRY(check_readable("certificate", options.certificate_file));
  ATOLL_TRY(check_readable("key", options.key_file));
  SslContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) return no_context();
  bool newest_only = options.min_version == TlsOptions::Version::Tls13;
  set_common(context.get(), newest_only ? TLS1_3_VERSION : TLS1_2_VERSION);
  // Clients resume by tickets, which cost the server no memory.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  SSL_CTX_set_default_passwd_cb(context.get(), no_password);
  // A whole record a system call instead of its head and its body.
  SSL_CTX_set_read_ahead(context.get(), 1);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.certificate_file.c_str()) != 1) {
    return bad_file("certificate", options.certificate_file);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), options.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return bad_file("key", options.key_file);
  }
  return context;
}

std::chrono::system_clock::time_point expiry_of(const SSL_CTX* context) {
  tm utc{};
  const X509* certificate = SSL_CTX_get0_certificate(context);
  ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &utc);
  return std::chrono::system_clock::from_time_t(timegm(&utc));
}

}  // namespace

void FreeSslContext::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

Result<std::shared_ptr<TlsContext>> TlsContext::create(TlsOptions options) {
  std::shared_ptr<TlsContext> context(new TlsContext(std::move(options)));
  ATOLL_TRY(context->reload());
  return context;
}

Result<void> TlsContext::reload() {
  ATOLL_ASSIGN(SslContext fresh, load(options_));
  context_ = std::move(fresh);  // sessions hold on to theirs
  expires_at_ = expiry_of(context_.get());
  return {};
}

Result<std::unique_ptr<TlsSession>> TlsContext::accept(int fd) const {
  return TlsSession::create(context_.get(), TlsSession::Role::Server, fd);
}

Result<std::shared_ptr<TlsClientContext>> TlsClientContext::create(const std::string& ca_file) {
  SslContext context(SSL_CTX_new(TLS_client_method()));
  if (!context) return no_context();
  set_common(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>(kProtocols.data()),
                          kProtocols.size());
  ERR_clear_error();
  if (ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else {
    ATOLL_TRY(check_readable("CA certificates", ca_file));
    if (SSL_CTX_load_verify_file(context.get(), ca_file.c_str()) != 1) {
      return bad_file("CA certificates", ca_file);
    }
  }
  return std::shared_ptr<TlsClientContext>(new TlsClientContext(std::move(context)));
}

Result<std::unique_ptr<TlsSession>> TlsClientContext::connect(int fd,
                                                              const std::string& host) const {
  ATOLL_ASSIGN(auto session, TlsSession::create(context_.get(), TlsSession::Role::Client, fd));
  ATOLL_TRY(session->expect_server(host));
  return session;
}

}  // namespace atl::http
