#include "egress/process.h"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "egress/outlet.h"
#include "egress/policy_json.h"
#include "os/fd_passing.h"
#include "os/parent_death.h"
#include "wire/frame.h"

namespace atl::egress {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr size_t kMostUnsent = 4u << 20;  // of traffic entries, should the server not read

// Whether packets of this kind would leave the host at all.
bool has_ipv6() {
  UniqueFd probe(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage far{};
  socklen_t size = IpAddress::parse("2001:4860:4860::8888")->fill(far, 53);
  return probe.valid() && connect(probe.get(), reinterpret_cast<sockaddr*>(&far), size) == 0;
}

class EgressProcess {
 public:
  EgressProcess(EgressConfig& config, std::vector<Endpoint> servers, AddressGuard guard,
                std::shared_ptr<http::TlsClientContext> trust)
      : server_(io_, config.server.release()),
        launcher_(io_, config.launcher.release()),
        deadlines_(io_.get_executor()),
        resolver_(io_.get_executor(), std::move(servers), has_ipv6()),
        guard_(std::move(guard)),
        around_{.executor = io_.get_executor(),
                .deadlines = deadlines_,
                .resolver = resolver_,
                .guard = guard_,
                .upstream_trust = std::move(trust),
                .report = [this](const std::string& slot, wire::TrafficEntry entry) {
                  report(slot, std::move(entry));
                }} {}

  void run() {
    guard_.set_own_addresses(host_addresses());
    spawn([this]() -> Task<void> { return serve_server(); });
    spawn([this]() -> Task<void> { return serve_launcher(); });
    spawn([this]() -> Task<void> { return sweep(); });
    io_.run();
  }

 private:
  template <class F>
  void spawn(F&& work) {
    asio::co_spawn(io_, std::forward<F>(work), asio::detached);
  }

  // An outlet exists from the first word of either side: policy and gate come in any order.
  std::shared_ptr<Outlet> outlet(const std::string& slot) {
    auto& found = outlets_[slot];
    if (found == nullptr) found = std::make_shared<Outlet>(around_, slot);
    return found;
  }

  Task<void> serve_server() {
    wire::FrameBuffer in;
    for (;;) {
      auto [error] = co_await server_.async_wait(asio::posix::descriptor_base::wait_read, kAwait);
      if (error) break;
      size_t room = in.wanted(64u << 10);
      ssize_t got = recv(server_.native_handle(), in.prepare(room), room, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) break;
      in.commit(static_cast<size_t>(got));
      for (;;) {
        auto frame = in.next();
        if (!frame) co_return io_.stop();
        if (!*frame) break;
        handle(**frame);
      }
      in.shrink();
    }
    io_.stop();
  }

  void handle(const wire::Frame& frame) {
    if (frame.type != static_cast<uint16_t>(wire::EgressType::PolicyRequest)) return;
    auto held = hold(frame);
    if (held) return send(frame.id, *held);
    send(frame.id, wire::EgressFailure{.code = static_cast<uint8_t>(held.error().code()),
                                       .message = held.error().message()});
  }

  Result<wire::PolicyHolds> hold(const wire::Frame& frame) {
    ATOLL_ASSIGN(auto request, wire::decode<wire::PolicyRequest>(frame.payload));
    ATOLL_ASSIGN(NetworkPolicy value, parse_policy(request.policy));
    SecretValues secrets;
    for (wire::NamedSecret& secret : request.secrets) {
      secrets[secret.name] = std::move(secret.value);
    }
    auto found = outlet(request.slot);
    auto policy = std::make_unique<Policy>(std::move(value), std::move(secrets));
    wire::PolicyHolds holds;
    ATOLL_ASSIGN(holds.closed, found->set_policy(std::move(policy), request.ca_seed));
    holds.certificate = found->certificate();
    return holds;
  }

  Task<void> serve_launcher() {
    for (;;) {
      auto [error] = co_await launcher_.async_wait(asio::posix::descriptor_base::wait_read, kAwait);
      if (error) break;
      auto message = os::receive_with_fds(launcher_.native_handle(), 4096, 4);
      if (!message || message->bytes.size() < wire::kHeaderBytes) break;
      on_gate(std::move(*message));
    }
    io_.stop();
  }

  void on_gate(os::ReceivedMessage message) {
    wire::FrameHeader header = wire::parse_header(message.bytes.data());
    std::string_view payload = std::string_view(message.bytes).substr(wire::kHeaderBytes);
    if (header.type == static_cast<uint16_t>(wire::EgressType::GateOpened)) {
      auto opened = wire::decode<wire::GateOpened>(payload);
      if (!opened || message.fds.size() != 4) return;
      std::array<UniqueFd, 4> sockets;
      for (size_t i = 0; i < sockets.size(); i++) sockets[i] = std::move(message.fds[i]);
      outlet(opened->slot)->open(std::move(sockets));
    } else if (header.type == static_cast<uint16_t>(wire::EgressType::GateClosed)) {
      auto closed = wire::decode<wire::GateClosed>(payload);
      if (!closed) return;
      auto gone = outlets_.extract(closed->slot);
      if (gone) gone.mapped()->close();
    }
  }

  Task<void> sweep() {
    asio::steady_timer timer(io_);
    for (;;) {
      timer.expires_after(30s);
      auto [error] = co_await timer.async_wait(kAwait);
      if (error) co_return;
      guard_.set_own_addresses(host_addresses());
      auto now = std::chrono::steady_clock::now();
      for (const auto& [slot, found] : outlets_) found->sweep(now);
    }
  }

  void report(const std::string& slot, wire::TrafficEntry entry) {
    traffic_[slot].push_back(std::move(entry));
    if (std::exchange(report_due_, true)) return;
    asio::post(io_, [this] {
      report_due_ = false;
      for (auto& [name, entries] : std::exchange(traffic_, {})) {
        if (unsent_.size() > kMostUnsent) break;
        send(0, wire::Traffic{.slot = name, .entries = std::move(entries)});
      }
    });
  }

  template <class Message>
  void send(uint32_t id, const Message& message) {
    wire::append_frame(unsent_, id, message);
    if (!std::exchange(sending_, true)) {
      spawn([this]() -> Task<void> { return send_all(); });
    }
  }

  Task<void> send_all() {
    while (!unsent_.empty()) {
      ssize_t size = ::send(server_.native_handle(), unsent_.data(), unsent_.size(),
                            MSG_DONTWAIT | MSG_NOSIGNAL);
      if (size > 0) {
        unsent_.erase(0, static_cast<size_t>(size));
        continue;
      }
      if (errno != EAGAIN && errno != EINTR) co_return io_.stop();
      auto [error] = co_await server_.async_wait(asio::posix::descriptor_base::wait_write, kAwait);
      if (error) co_return;
    }
    unsent_.shrink_to_fit();
    sending_ = false;
  }

  asio::io_context io_{1};
  asio::posix::stream_descriptor server_;
  asio::posix::stream_descriptor launcher_;
  http::DeadlineQueue deadlines_;
  Resolver resolver_;
  AddressGuard guard_;
  Surroundings around_;
  std::map<std::string, std::shared_ptr<Outlet>> outlets_;  // by slot
  std::map<std::string, std::vector<wire::TrafficEntry>> traffic_;
  std::string unsent_;
  bool report_due_ = false;
  bool sending_ = false;
};

// Secrets are in this process's memory: no core file, no debugger.
Result<void> give_up_rights(const EgressConfig& config) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  if (setgroups(0, nullptr) != 0) return fail_errno("setgroups");
  if (setresgid(config.gid, config.gid, config.gid) != 0) return fail_errno("setresgid");
  if (setresuid(config.uid, config.uid, config.uid) != 0) return fail_errno("setresuid");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno("no_new_privs");
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return fail_errno("PR_SET_DUMPABLE");
  os::die_with_parent(config.parent);
  return {};
}

Result<std::unique_ptr<EgressProcess>> prepare(EgressConfig& config) {
  // Read while we still may: an operator's file need not be everybody's.
  ATOLL_ASSIGN(auto trust, http::TlsClientContext::create(config.ca_file));
  ATOLL_ASSIGN(auto servers, name_servers(config.dns_upstream));
  ATOLL_ASSIGN(AddressGuard guard, AddressGuard::parse(config.allow_private));
  ATOLL_TRY(give_up_rights(config));
  return std::make_unique<EgressProcess>(config, std::move(servers), std::move(guard),
                                         std::move(trust));
}

}  // namespace

void run_egress(EgressConfig config) {
  prctl(PR_SET_NAME, "atoll-egress");
  set_log_component("egress");
  signal(SIGHUP, SIG_IGN);
  auto process = prepare(config);
  if (!process) {
    log(LogLevel::Error, "egress cannot start", {{"error", process.error().message()}});
    _exit(4);
  }
  (*process)->run();
  _exit(0);
}

}  // namespace atl::egress
