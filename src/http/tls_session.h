#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "http/socket_calls.h"

// OpenSSL's, so that its headers stay out of ours.
struct ssl_st;
struct ssl_ctx_st;

namespace atl::http {

// TLS on a connected socket, either side of it. Never waits: what cannot go on says what it is
// waiting for. Idle it holds no buffers. Does not own the socket, which must outlive it; says
// goodbye (close_notify) when it goes, unless the connection broke.
class TlsSession {
 public:
  enum class Role { Server, Client };
  enum class Wait { None, Readable, Writable };

  static Result<std::unique_ptr<TlsSession>> create(ssl_ctx_st* context, Role role, int fd);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // Before the handshake of a client: whom to ask for and whose certificate to accept.
  Result<void> expect_server(const std::string& host);

  // As far as it goes now; false: it waits for what read_waits_for() says.
  Result<bool> handshake();
  // The peer of a failed handshake spoke HTTP in the clear.
  bool met_plain_http() const { return plain_http_; }

  // As receive_now() and send_now(). A write that has not gone through must be repeated with the
  // same bytes.
  Result<std::optional<size_t>> read_now(std::span<char> into);
  Result<bool> write_now(WriteParts& parts);
  // What the last one that could not go on waits for: rarely the other direction.
  Wait read_waits_for() const { return read_waits_for_; }
  Wait write_waits_for() const { return write_waits_for_; }

  // Decrypted bytes that read_now() would give without asking the socket, which poll() cannot see.
  bool has_buffered() const;
  // Nothing more will be written.
  void close_notify();

 private:
  struct FreeSsl {
    void operator()(ssl_st* ssl) const;
  };
  explicit TlsSession(ssl_st* ssl) : ssl_(ssl) {}
  Result<Wait> classify(int result, std::string_view doing);

  std::unique_ptr<ssl_st, FreeSsl> ssl_;
  Wait read_waits_for_ = Wait::Readable;
  Wait write_waits_for_ = Wait::Writable;
  bool plain_http_ = false;
  bool broken_ = false;
  bool write_closed_ = false;
};

// Why OpenSSL's last call failed: the first of the reasons it gives, which is the cause of the
// rest.
std::string openssl_reason();

}  // namespace atl::http
