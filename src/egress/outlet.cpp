#include "egress/outlet.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "egress/connection.h"
#include "egress/destination.h"

namespace atl::egress {

namespace asio = boost::asio;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr size_t kMostConnections = 1024;
constexpr size_t kMostPins = 4096;
constexpr size_t kMostNames = 64;  // of one address
constexpr size_t kMostIdle = 64;   // upstream connections
constexpr std::chrono::seconds kMostIdleTime{60};
constexpr std::chrono::milliseconds kOutOfDescriptors{100};
constexpr std::chrono::seconds kConnectPatience{10};

static int64_t now_ms() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

Outlet::Outlet(Surroundings& around, std::string slot)
    : around_(around),
      slot_(std::move(slot)),
      policy_(std::make_shared<Policy>(NetworkPolicy{}, SecretValues{})) {}

Outlet::~Outlet() = default;

void Outlet::open(std::array<UniqueFd, 4> sockets) {
  for (size_t i = 0; i < sockets.size(); i++) {
    auto socket = std::make_shared<Descriptor>(around_.executor, sockets[i].release());
    sockets_.push_back(socket);
    bool stream = i < 2;
    auto self = shared_from_this();
    asio::co_spawn(
        around_.executor,
        [self, socket, stream]() -> Task<void> {
          return stream ? self->accept_loop(socket) : self->dns_loop(socket);
        },
        asio::detached);
  }
}

void Outlet::close() {
  closed_ = true;
  for (const auto& socket : sockets_) {
    boost::system::error_code ignored;
    socket->close(ignored);
  }
  sockets_.clear();
  idle_.clear();
  for (Connection* connection : connections_) connection->abort("the sandbox has ended");
}

Result<uint32_t> Outlet::set_policy(std::unique_ptr<Policy> policy, std::string_view ca_seed) {
  std::vector<std::string> domains = policy->intercepted_domains();
  if (domains.empty()) {
    authority_.reset();
  } else if (authority_ == nullptr || domains != authority_domains_) {
    ATOLL_ASSIGN(authority_, Authority::create(ca_seed, domains));
  }
  authority_domains_ = std::move(domains);
  policy_ = std::move(policy);
  bytes_.set_rate(policy_->value().limits.bytes_per_second);
  requests_.set_rate(policy_->value().limits.requests_per_second);
  bytes_by_domain_.clear();
  requests_by_domain_.clear();
  idle_.clear();
  uint32_t closed = 0;
  for (Connection* connection : connections_) {
    if (connection->allowed_by(*policy_)) continue;
    connection->abort("the policy has changed");
    closed++;
  }
  return closed;
}

void Outlet::sweep(std::chrono::steady_clock::time_point now) {
  for (Connection* connection : connections_) {
    if (connection->idle_at(now)) connection->abort("idle for too long");
  }
  for (auto& [host, list] : idle_) {
    std::erase_if(list, [&](const auto& one) { return now - one->idle_since > kMostIdleTime; });
  }
  std::erase_if(idle_, [](const auto& host) { return host.second.empty(); });
}

Task<void> Outlet::accept_loop(std::shared_ptr<Descriptor> listener) {
  auto self = shared_from_this();
  for (;;) {
    auto [error] = co_await listener->async_wait(asio::posix::descriptor_base::wait_read, kAwait);
    if (error || closed_) co_return;
    if (accept_all(listener->native_handle())) continue;
    // What waits there keeps it readable: asking again at once would be a busy loop.
    asio::steady_timer pause(around_.executor, kOutOfDescriptors);
    (void)co_await pause.async_wait(kAwait);
    if (closed_) co_return;
  }
}

bool Outlet::accept_all(int listener) {
  for (int i = 0; i < 64; i++) {
    UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) return errno != EMFILE && errno != ENFILE;
    // Everything that is refused is reset, so that nobody waits for an answer.
    auto reset = [&] {
      linger at_once{.l_onoff = 1, .l_linger = 0};
      setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    };
    auto wanted = destination_of(fd.get());
    if (!wanted) {
      reset();
      continue;
    }
    Basis basis{.name = {},
                .address = IpAddress::from(*wanted),
                .port = port_of(*wanted),
                .protocol = Protocol::Opaque,
                .intercepted = false};
    uint32_t most = policy_->value().limits.connections;
    if (connections_.size() >= (most != 0 ? most : kMostConnections)) {
      reset();
      refused(basis, {false, "limits.connections", "too many connections at once", -1});
      continue;
    }
    if (policy_->denies_all()) {
      reset();
      refused(basis, {false, "deny-all", "this sandbox has no network", -1});
      continue;
    }
    int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Connection::start(shared_from_this(), std::move(fd), std::move(basis));
  }
  return true;
}

std::string Outlet::pinned_name(const IpAddress& address, uint16_t port) const {
  auto found = pins_.find(address);
  if (found == pins_.end()) return {};
  for (const std::string& name : found->second.names) {
    if (policy_->judge(name, port, Protocol::Opaque).allowed) return name;
  }
  return {};
}

void Outlet::pin(const IpAddress& address, const std::string& name) {
  if (pins_.size() >= kMostPins && !pins_.contains(address)) pins_.erase(pins_.begin());
  auto& names = pins_[address].names;
  if (names.size() >= kMostNames && !names.contains(name)) names.erase(names.begin());
  names.insert(name);
}

Task<Result<Outlet::Reached>> Outlet::reach(std::string name, uint16_t port, IpAddress preferred) {
  ATOLL_CO_ASSIGN(auto found, co_await around_.resolver.addresses(name));
  if (found.empty()) co_return fail(ErrorCode::NotFound, name + " has no address");
  // The one that the client chose, where it is among them; the same kind first.
  std::stable_sort(found.begin(), found.end(), [&](const IpAddress& a, const IpAddress& b) {
    auto rank = [&](const IpAddress& one) {
      return one == preferred ? 0 : (one.is_v4() == preferred.is_v4() ? 1 : 2);
    };
    return rank(a) < rank(b);
  });
  Error last(ErrorCode::Unavailable, "no address can be reached");
  for (const IpAddress& address : found) {
    auto reached = co_await reach_address(address, port);
    if (reached) co_return std::move(*reached);
    bool refused = last.code() == ErrorCode::PermissionDenied;
    if (!refused) last = std::move(reached).error();
  }
  co_return fail(std::move(last));
}

Task<Result<Outlet::Reached>> Outlet::reach_address(IpAddress address, uint16_t port) {
  if (auto why = around_.guard.refuses(address)) co_return fail(ErrorCode::PermissionDenied, *why);
  if (auto rule = policy_->denied_by(address)) {
    co_return fail(ErrorCode::PermissionDenied, address.text() + " is denied by " + *rule);
  }
  sockaddr_storage to{};
  socklen_t size = address.fill(to, port);
  UniqueFd fd(socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) co_return fail_errno("socket", address.text());
  int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), size) == 0) {
    co_return Reached{std::move(fd), address};
  }
  if (errno != EINPROGRESS) co_return fail_errno("connect", address.text());
  http::Socket socket(around_.executor, std::move(fd), around_.deadlines);
  auto waited = co_await socket.wait_writable(kConnectPatience);
  if (!waited) co_return fail(ErrorCode::Timeout, address.text() + " does not answer");
  int problem = 0;
  socklen_t problem_size = sizeof problem;
  getsockopt(socket.native_handle(), SOL_SOCKET, SO_ERROR, &problem, &problem_size);
  if (problem != 0) co_return fail(Error::from_errno(problem, "connect", address.text()));
  co_return Reached{socket.release().fd, address};
}

std::unique_ptr<Upstream> Outlet::take_idle(const std::string& key) {
  auto found = idle_.find(key);
  while (found != idle_.end() && !found->second.empty()) {
    auto upstream = std::move(found->second.back());
    found->second.pop_back();
    char byte;
    auto readable = upstream->socket.try_read({&byte, 1});
    if (readable && !*readable) return upstream;  // alive and silent, as it should be
  }
  return nullptr;
}

void Outlet::give_idle(const std::string& key, std::unique_ptr<Upstream> upstream) {
  size_t count = 0;
  for (const auto& [host, list] : idle_) count += list.size();
  if (closed_ || count >= kMostIdle) return;
  upstream->idle_since = std::chrono::steady_clock::now();
  idle_[key].push_back(std::move(upstream));
}

void Outlet::report(wire::TrafficEntry entry) {
  if (entry.at_ms == 0) entry.at_ms = now_ms();
  around_.report(slot_, std::move(entry));
}

void Outlet::refused(const Basis& basis, const Verdict& verdict, std::string request) {
  wire::TrafficEntry entry;
  entry.protocol = std::string(to_string(basis.protocol));
  entry.name = basis.name;
  if (basis.protocol != Protocol::Dns) entry.address = basis.address.text();
  entry.port = basis.port;
  entry.rule = verdict.rule;
  entry.reason = verdict.reason;
  entry.request = std::move(request);
  report(std::move(entry));
}

Throttle& Outlet::bytes_of(const std::string& domain, const TrafficLimits& limits) {
  Throttle& throttle = bytes_by_domain_[domain];
  throttle.set_rate(limits.bytes_per_second);
  return throttle;
}

Throttle& Outlet::requests_of(const std::string& domain, const TrafficLimits& limits) {
  Throttle& throttle = requests_by_domain_[domain];
  throttle.set_rate(limits.requests_per_second);
  return throttle;
}

size_t Outlet::connections_to(const std::string& domain) const {
  return static_cast<size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [&](const Connection* connection) { return connection->domain() == domain; }));
}

}  // namespace atl::egress
