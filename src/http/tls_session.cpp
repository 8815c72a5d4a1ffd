#include "http/tls_session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace atl::http {
namespace {

constexpr size_t kRecordBytes = 16 * 1024;
// Encrypting takes time: other connections get their turn after so much.
constexpr size_t kBytesAtOnce = 256 * 1024;

int fd_of(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

int bio_write(BIO* bio, const char* bytes, int length) {
  BIO_clear_retry_flags(bio);
  ssize_t sent = 0;
  do {
    sent = ::send(fd_of(bio), bytes, static_cast<size_t>(length), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno == EAGAIN) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int bio_read(BIO* bio, char* into, int length) {
  BIO_clear_retry_flags(bio);
  ssize_t got = 0;
  do {
    got = ::recv(fd_of(bio), into, static_cast<size_t>(length), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

// OpenSSL's own socket BIO uses write(), and a peer that has left would end the process by SIGPIPE.
const BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

bool is_address(const std::string& host) {
  in6_addr ignored{};
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

// The next record's bytes: where they lie if one part fills it, else gathered.
std::string_view next_record(const WriteParts& parts, std::span<char, kRecordBytes> space) {
  size_t used = 0;
  for (std::string_view part : parts) {
    if (part.empty()) continue;
    if (used == 0 && part.size() >= kRecordBytes) return part.substr(0, kRecordBytes);
    size_t count = std::min(part.size(), kRecordBytes - used);
    std::memcpy(space.data() + used, part.data(), count);
    used += count;
  }
  return {space.data(), used};
}

}  // namespace

std::string openssl_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  return reason == nullptr ? "unknown error" : reason;
}

void TlsSession::FreeSsl::operator()(ssl_st* ssl) const { SSL_free(ssl); }

Result<std::unique_ptr<TlsSession>> TlsSession::create(ssl_ctx_st* context, Role role, int fd) {
  std::unique_ptr<TlsSession> session(new TlsSession(SSL_new(context)));
  SSL* ssl = session->ssl_.get();
  BIO* bio = ssl == nullptr ? nullptr : BIO_new(socket_method());
  if (bio == nullptr) return fail(ErrorCode::ResourceExhausted, "no memory for TLS");
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  if (role == Role::Server) {
    SSL_set_accept_state(ssl);
  } else {
    SSL_set_connect_state(ssl);
  }
  return session;
}

TlsSession::~TlsSession() {
  if (ssl_) close_notify();
}

Result<void> TlsSession::expect_server(const std::string& host) {
  X509_VERIFY_PARAM* wanted = SSL_get0_param(ssl_.get());
  X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  bool set = false;
  if (is_address(host)) {
    set = X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) == 1;
  } else {
    set = SSL_set1_host(ssl_.get(), host.c_str()) == 1 &&
          SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) == 1;
  }
  if (!set) return fail(ErrorCode::InvalidArgument, "not a host name: " + host);
  return {};
}

// What a call that did not succeed came to. Wait::None is an orderly end.
Result<TlsSession::Wait> TlsSession::classify(int result, std::string_view doing) {
  int system_error = errno;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Wait::Readable;
    case SSL_ERROR_WANT_WRITE:
      return Wait::Writable;
    case SSL_ERROR_ZERO_RETURN:
      return Wait::None;
    case SSL_ERROR_SYSCALL:
      broken_ = true;
      if (system_error != 0) return fail(Error::from_errno(system_error, doing));
      // Without close_notify anybody on the way could have cut it.
      return fail(ErrorCode::Unavailable, "the peer closed the connection without saying so");
    default:
      broken_ = true;
      return fail(ErrorCode::Unavailable, "TLS: " + openssl_reason());
  }
}

Result<bool> TlsSession::handshake() {
  ERR_clear_error();
  errno = 0;
  int result = SSL_do_handshake(ssl_.get());
  read_waits_for_ = Wait::Readable;
  if (result == 1) return true;
  auto wait = classify(result, "TLS handshake");
  if (wait && *wait != Wait::None) {
    read_waits_for_ = *wait;
    return false;
  }
  broken_ = true;
  plain_http_ = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
  long verified = SSL_get_verify_result(ssl_.get());
  if (verified != X509_V_OK) {
    return fail(ErrorCode::Unauthenticated, std::string("the server's certificate is refused: ") +
                                                X509_verify_cert_error_string(verified));
  }
  if (!wait) return tl::unexpected(std::move(wait).error());
  return fail(ErrorCode::Unavailable, "the peer ended the TLS handshake");
}

Result<std::optional<size_t>> TlsSession::read_now(std::span<char> into) {
  if (broken_) return fail(ErrorCode::Unavailable, "the TLS connection is broken");
  size_t total = 0;
  read_waits_for_ = Wait::Readable;
  while (total < into.size()) {
    ERR_clear_error();
    errno = 0;
    size_t got = 0;
    if (SSL_read_ex(ssl_.get(), into.data() + total, into.size() - total, &got) == 1) {
      total += got;
      continue;
    }
    // What was read goes first; an end or an error will show again.
    auto wait = classify(0, "recv");
    if (total > 0) break;
    if (!wait) return tl::unexpected(std::move(wait).error());
    if (*wait == Wait::None) return std::optional<size_t>(0);
    read_waits_for_ = *wait;
    return std::optional<size_t>();
  }
  return std::optional<size_t>(total);
}

Result<bool> TlsSession::write_now(WriteParts& parts) {
  if (broken_) return fail(ErrorCode::Unavailable, "the TLS connection is broken");
  std::array<char, kRecordBytes> space;
  write_waits_for_ = Wait::Writable;
  for (size_t total = 0; total < kBytesAtOnce;) {
    std::string_view record = next_record(parts, space);
    if (record.empty()) return true;
    ERR_clear_error();
    errno = 0;
    size_t sent = 0;
    if (SSL_write_ex(ssl_.get(), record.data(), record.size(), &sent) != 1) {
      ATOLL_ASSIGN(write_waits_for_, classify(0, "send"));
      if (write_waits_for_ == Wait::None) return fail(ErrorCode::Unavailable, "TLS is closed");
      return false;
    }
    drop_front(parts, sent);
    total += sent;
  }
  return std::all_of(parts.begin(), parts.end(), [](std::string_view p) { return p.empty(); });
}

bool TlsSession::has_buffered() const { return SSL_pending(ssl_.get()) > 0; }

void TlsSession::close_notify() {
  if (broken_ || write_closed_ || SSL_in_init(ssl_.get()) == 1) return;
  write_closed_ = true;
  ERR_clear_error();
  // One attempt: a peer that takes nothing gets no goodbye.
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

}  // namespace atl::http
