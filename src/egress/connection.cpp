#include "egress/connection.h"

#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>

#include "egress/client_hello.h"
#include "egress/http_relay.h"
#include "egress/name.h"

namespace atl::egress {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kIdle = 10min;
constexpr auto kPinnedFirstBytes = 250ms;  // a server that speaks first is waited for so long

// One buffer for all: what is read is passed on before anybody else runs, or copied.
static std::span<char> shared_buffer() {
  static std::array<char, 128 * 1024> buffer;
  return buffer;
}

void Connection::start(std::shared_ptr<Outlet> outlet, UniqueFd client, Basis basis) {
  auto executor = outlet->around().executor;
  auto connection =
      std::make_shared<Connection>(std::move(outlet), std::move(client), std::move(basis));
  asio::co_spawn(
      executor, [connection]() -> Task<void> { return connection->run(); }, asio::detached);
}

Connection::Connection(std::shared_ptr<Outlet> outlet, UniqueFd client, Basis basis)
    : outlet_(std::move(outlet)), basis_(std::move(basis)) {
  client_.emplace(outlet_->around().executor, std::move(client), outlet_->around().deadlines);
  outlet_->add(this);
}

Connection::~Connection() { outlet_->remove(this); }

bool Connection::allowed_by(const Policy& policy) const {
  if (basis_.port == 53 && basis_.name.empty()) return !policy.denies_all();
  if (basis_.name.empty()) {
    // Not judged yet, or by address.
    return domain_.empty() ? !policy.denies_all()
                           : policy.judge(basis_.address, basis_.port).allowed;
  }
  if (policy.denied_by(basis_.address)) return false;
  Verdict verdict = policy.judge(basis_.name, basis_.port, basis_.protocol);
  if (!verdict.allowed) return false;
  bool opened = basis_.protocol == Protocol::Tls && policy.intercepts(verdict.permit);
  return opened == basis_.intercepted;
}

void Connection::abort(std::string reason) {
  if (aborted_) return;
  aborted_ = true;
  entry_.reason = std::move(reason);
  end_at_once();
  if (client_) client_->abort();
  if (upstream_ != nullptr) upstream_->abort();
}

bool Connection::idle_at(Clock::time_point now) const { return now - active_ > kIdle; }

void Connection::end_at_once() {
  if (!client_) return;
  linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(client_->native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void Connection::refuse(const Verdict& verdict) {
  refused_ = true;
  end_at_once();
  outlet_->refused(basis_, verdict);
}

// The alert says "access denied", which clients show.
void Connection::refuse_tls(const Verdict& verdict) {
  static constexpr char kAccessDenied[] = {21, 3, 3, 0, 2, 2, 49};
  refused_ = true;
  outlet_->refused(basis_, verdict);
  // Read what is there first: closing over unread bytes would reset, and lose the alert.
  (void)client_->try_read(shared_buffer());
  http::WriteParts parts{std::string_view(kAccessDenied, sizeof kAccessDenied)};
  (void)client_->try_write(parts);
}

bool Connection::admit(const Verdict& verdict) {
  entry_.rule = verdict.rule;
  domain_ = verdict.rule;
  if (verdict.permit >= 0) limits_ = outlet_->policy()->permit(verdict.permit).limits;
  limited_ = limits_.bytes_per_second != 0 || outlet_->bytes().active();
  if (limits_.connections == 0 || outlet_->connections_to(domain_) <= limits_.connections) {
    return true;
  }
  refuse({false, domain_, "too many connections at once to " + domain_, -1});
  return false;
}

bool Connection::begin_request(const std::string& host, const Verdict& verdict) {
  basis_.name = host;
  if (domain_ == verdict.rule) return true;
  return admit(verdict);
}

Task<void> Connection::throttled(size_t bytes) {
  co_await outlet_->bytes().pass(bytes);
  if (limits_.bytes_per_second != 0) {
    co_await outlet_->bytes_of(domain_, limits_).pass(bytes);
  }
}

Task<void> Connection::run() {
  auto self = shared_from_this();
  auto served = co_await serve();
  upstream_ = nullptr;
  // A refusal has its own entry; this one is for what went on before it.
  if (refused_ && entry_.received == 0) co_return;
  if (basis_.port == 53 && basis_.name.empty()) co_return;
  bool denied = !served && served.error().code() == ErrorCode::PermissionDenied;
  entry_.allowed = denied || domain_.empty() ? 0 : 1;
  if (!served && entry_.reason.empty()) entry_.reason = served.error().message();
  if (denied) end_at_once();
  bool https = basis_.intercepted;
  entry_.protocol = https ? "https" : std::string(to_string(basis_.protocol));
  entry_.name = basis_.name;
  if (entry_.address.empty()) entry_.address = basis_.address.text();
  entry_.port = basis_.port;
  auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began_);
  entry_.duration_ms = static_cast<uint32_t>(took.count());
  outlet_->report(entry_);
}

Task<Result<void>> Connection::serve() {
  if (basis_.port == 53) co_return co_await serve_dns();
  Verdict by_address = outlet_->policy()->judge(basis_.address, basis_.port);
  if (by_address.allowed) co_return co_await serve_by_address(by_address);
  std::string pinned = outlet_->pinned_name(basis_.address, basis_.port);
  First first = co_await first_bytes(pinned.empty() ? 3000ms : kPinnedFirstBytes);
  if (first.kind == Kind::Gone) {
    refused_ = true;  // nothing was asked for
    co_return Result<void>();
  }
  if (first.kind == Kind::Tls) co_return co_await serve_tls(std::move(first.server_name));
  if (first.kind == Kind::Http) {
    basis_.protocol = Protocol::Http;
    HttpRelay relay(*this, *client_, "");
    co_return co_await relay.run();
  }
  if (!pinned.empty()) co_return co_await serve_pinned(pinned);
  if (first.kind == Kind::Silent) {
    by_address.reason += "; the client has not said which host it wants (TLS or HTTP)";
  } else if (by_address.rule.empty()) {
    by_address.reason += "; only TLS and HTTP may go to allowed domains without host:port";
  }
  refuse(by_address);
  co_return Result<void>();
}

Task<Result<void>> Connection::serve_by_address(const Verdict& verdict) {
  if (!admit(verdict)) co_return Result<void>();
  ATOLL_CO_ASSIGN(auto reached, co_await outlet_->reach_address(basis_.address, basis_.port));
  co_return co_await relay(std::move(reached));
}

Task<Result<void>> Connection::serve_pinned(const std::string& name) {
  Verdict verdict = outlet_->policy()->judge(name, basis_.port, Protocol::Opaque);
  basis_.name = name;
  if (!verdict.allowed) {
    refuse(verdict);
    co_return Result<void>();
  }
  if (!admit(verdict)) co_return Result<void>();
  ATOLL_CO_ASSIGN(auto reached, co_await outlet_->reach(name, basis_.port, basis_.address));
  co_return co_await relay(std::move(reached));
}

Task<Result<void>> Connection::serve_tls(std::string server_name) {
  basis_.protocol = Protocol::Tls;
  auto name = canonical_name(server_name);
  if (!name) {
    std::string what = server_name.empty() ? "the client names no host (SNI)" : "not a host name";
    refuse_tls({false, "", what, -1});
    co_return Result<void>();
  }
  basis_.name = *name;
  Verdict verdict = outlet_->policy()->judge(*name, basis_.port, Protocol::Tls);
  if (!verdict.allowed) {
    refuse_tls(verdict);
    co_return Result<void>();
  }
  if (!admit(verdict)) co_return Result<void>();
  basis_.intercepted = outlet_->policy()->intercepts(verdict.permit);
  if (basis_.intercepted) co_return co_await serve_intercepted();
  ATOLL_CO_ASSIGN(auto reached, co_await outlet_->reach(*name, basis_.port, basis_.address));
  co_return co_await relay(std::move(reached));
}

Task<Result<void>> Connection::serve_intercepted() {
  if (outlet_->authority() == nullptr) co_return fail(ErrorCode::Internal, "no authority");
  ATOLL_CO_ASSIGN(ssl_ctx_st * context, outlet_->authority()->context_for(basis_.name));
  auto released = client_->release();
  ATOLL_CO_ASSIGN(auto session, http::TlsSession::create(context, http::TlsSession::Role::Server,
                                                         released.fd.get()));
  client_.emplace(outlet_->around().executor, std::move(released.fd), outlet_->around().deadlines,
                  std::move(session));
  ATOLL_CO_TRY(co_await client_->handshake(Clock::now() + 10s));
  HttpRelay relay(*this, *client_, basis_.name);
  co_return co_await relay.run();
}

// Looks at the first bytes without taking them, until they say what this is.
Task<Connection::First> Connection::first_bytes(std::chrono::milliseconds patience) {
  auto deadline = Clock::now() + patience;
  int seen = 0;
  for (;;) {
    auto buffer = shared_buffer().first(kMaxClientHello + 1024);
    ssize_t size =
        recv(client_->native_handle(), buffer.data(), buffer.size(), MSG_PEEK | MSG_DONTWAIT);
    if (size == 0) co_return First{seen == 0 ? Kind::Gone : Kind::Other, {}};
    if (size < 0 && errno != EAGAIN && errno != EINTR) co_return First{Kind::Gone, {}};
    if (size > 0) {
      std::string_view bytes(buffer.data(), static_cast<size_t>(size));
      if (bytes[0] == 22) {
        ClientHello hello = read_client_hello(bytes);
        if (hello.state == ClientHello::State::Whole) {
          co_return First{Kind::Tls, std::move(hello.server_name)};
        }
        bool more = hello.state == ClientHello::State::Incomplete && bytes.size() < buffer.size();
        if (!more) co_return First{Kind::Other, {}};
      } else {
        HttpStart start = looks_like_http(bytes);
        if (start == HttpStart::Yes) co_return First{Kind::Http, {}};
        if (start == HttpStart::No) co_return First{Kind::Other, {}};
      }
      seen = static_cast<int>(size);
    }
    // Bytes that were only looked at would wake us at once: wait for one more than those.
    int wanted = seen + 1;
    setsockopt(client_->native_handle(), SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof wanted);
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    bool late = left.count() <= 0;
    if (!late) {
      // Not the socket's own deadline, after which nothing else could be done with it.
      asio::steady_timer timer(client_->executor(), left);
      auto armed = std::make_shared<bool>(true);
      timer.async_wait([armed, self = shared_from_this()](boost::system::error_code error) {
        if (!error && *armed) self->client_->cancel();
      });
      auto waited = co_await client_->wait_readable(std::chrono::hours(1));
      *armed = false;
      if (aborted_) co_return First{Kind::Gone, {}};
      late = !waited;
    }
    int one = 1;
    setsockopt(client_->native_handle(), SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
    if (late) co_return First{seen == 0 ? Kind::Silent : Kind::Other, {}};
  }
}

Task<Result<void>> Connection::relay(Outlet::Reached reached) {
  if (aborted_) co_return fail(ErrorCode::Cancelled, entry_.reason);
  note_address(reached.address);
  if (!basis_.name.empty()) basis_.address = reached.address;
  auto upstream = std::make_shared<http::Socket>(outlet_->around().executor, std::move(reached.fd),
                                                 outlet_->around().deadlines);
  set_upstream(upstream.get());
  co_await pump_both(*upstream);
  set_upstream(nullptr);
  co_return Result<void>();
}

Task<void> Connection::pump_both(http::Socket& upstream) {
  auto self = shared_from_this();
  co_await http::tunnel(*client_, upstream, *this);
}

Task<Result<void>> Connection::serve_dns() {
  for (;;) {
    std::string message(2, '\0');
    auto fill = [&](size_t wanted) -> Task<Result<bool>> {
      size_t have = message.size() == 2 && wanted == 2 ? 0 : 2;
      message.resize(have == 0 ? 2 : 2 + wanted);
      for (size_t end = message.size(); have < end;) {
        ATOLL_CO_ASSIGN(size_t got,
                        co_await client_->read({message.data() + have, end - have}, 10s));
        if (got == 0) co_return false;
        have += got;
      }
      co_return true;
    };
    ATOLL_CO_ASSIGN(bool more, co_await fill(2));
    if (!more) co_return Result<void>();
    size_t size = static_cast<size_t>(static_cast<uint8_t>(message[0])) << 8 |
                  static_cast<uint8_t>(message[1]);
    if (size == 0 || size > 1232) co_return Result<void>();
    ATOLL_CO_ASSIGN(more, co_await fill(size));
    if (!more) co_return Result<void>();
    std::string query = message.substr(2);
    std::string answer(1500, '\0');
    bool waiting = false;
    answer.resize(outlet_->answer_now(query, answer, waiting));
    if (waiting) answer = co_await outlet_->answer_later(query);
    if (answer.empty()) co_return Result<void>();
    std::string framed{static_cast<char>(answer.size() >> 8),
                       static_cast<char>(answer.size() & 0xff)};
    framed += answer;
    ATOLL_CO_TRY(co_await client_->write({framed}, 10s));
  }
}

}  // namespace atl::egress
