#include "serve/server_process.h"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "api/e2b/protocol.h"
#include "api/preview/protocol.h"
#include "api/protocol.h"
#include "backends/native/native_backend.h"
#include "base/log.h"
#include "base/version.h"
#include "code/interpreter.h"
#include "code/replays.h"
#include "http/server.h"
#include "http/server_metrics.h"
#include "os/file.h"
#include "os/parent_death.h"
#include "sandbox/manager.h"
#include "serve/online_backup.h"
#include "store/store.h"

namespace atl::serve {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

Result<void> drop_privileges(const Account& account) {
  if (setgroups(0, nullptr) != 0) return fail_errno("setgroups");
  if (setresgid(account.gid, account.gid, account.gid) != 0) return fail_errno("setresgid");
  if (setresuid(account.uid, account.uid, account.uid) != 0) return fail_errno("setresuid");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno("no_new_privs");
  return {};
}

void raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

api::ServiceSettings settings_from(const config::Config& config, const Prepared& prepared) {
  return {.version = kVersion,
          .base_url = config.public_url.empty() ? prepared.base_url : config.public_url,
          .allowed_origin = config.allowed_origin,
          .preview_domain = config.preview_domain,
          .templates_dir = config.data_dir + "/templates",
          .rate_per_s = config.rate_per_second,
          .public_metrics = config.metrics_public,
          .max_lifetime_s = config.lifetimes.max_s,
          .idle_timeout_s = config.lifetimes.idle_s,
          .delete_after_stopped_s = config.lifetimes.delete_after_stop_s};
}

Result<std::optional<auth::AuditLog>> open_audit(const config::Config& config) {
  if (!config.audit) return std::nullopt;
  return auth::AuditLog::open(config.data_dir + "/audit", sandbox::wall_clock_ms());
}

http::ServerOptions observed_by(MetricsRegistry& metrics) {
  http::ServerOptions options;
  options.observer = std::make_shared<http::ServerMetrics>(metrics);
  return options;
}

// Sandboxes' own hosts come first: whatever else a request says, it is for them.
std::vector<api::Protocol> protocols_of(api::Service& service, asio::any_io_executor executor) {
  std::vector<api::Protocol> all = api::preview::protocols(service, std::move(executor));
  for (api::Protocol& protocol : api::e2b::protocols()) all.push_back(std::move(protocol));
  return all;
}

class ServerProcess {
 public:
  ServerProcess(const config::Config& config, Prepared& prepared, ServerLinks links,
                std::unique_ptr<store::Store> store, const auth::MasterKey& master,
                std::optional<auth::AuditLog> audit, bool announce)
      : config_(config),
        prepared_(prepared),
        announce_(announce),
        store_(std::move(store)),
        launcher_(std::make_shared<native::LauncherClient>(io_.get_executor(),
                                                           std::move(links.launcher))),
        egress_(
            std::make_shared<native::EgressClient>(io_.get_executor(), std::move(links.egress))),
        backend_(io_.get_executor(), launcher_,
                 {.data_dir = config.data_dir, .run_dir = config.run_dir}),
        manager_(std::make_shared<sandbox::Manager>(
            io_.get_executor(), backend_, *store_,
            sandbox::ManagerOptions{
                .pool = {.target = config.pool, .limits = config.default_limits},
                .max_sandboxes = config.max_sandboxes,
                .keep_events_ms = int64_t{config.events_keep_hours} * 3'600'000,
                .memory_images_bytes = config.memory_images_bytes})),
        keys_(*store_),
        secrets_(*store_, auth::SecretBox(master.derive(auth::kSecretsLabel))),
        policy_box_(master.derive(auth::kPoliciesLabel)),
        tokens_(master),
        master_(master),
        audit_(std::move(audit)),
        backup_(*store_, config.data_dir),
        service_{.manager = *manager_,
                 .keys = keys_,
                 .secrets = secrets_,
                 .tokens = tokens_,
                 .audit = audit_ ? &*audit_ : nullptr,
                 .settings = settings_from(config, prepared),
                 .metrics = metrics_,
                 .make_backup = [this] { return backup_.make(); },
                 .limiter = auth::RateLimiter(),
                 .code = std::make_shared<code::Interpreter>(),
                 .replays = std::make_shared<code::Replays>(
                     [] { return static_cast<int64_t>(os::monotonic_us() / 1000); })},
        server_(io_.get_executor(),
                api::make_router(service_, protocols_of(service_, io_.get_executor())),
                observed_by(metrics_)),
        signals_(io_.get_executor(), SIGTERM, SIGINT),
        reload_signal_(io_.get_executor(), SIGHUP) {}

  int run() {
    launcher_->on_lost([this] {
      if (ending_) return;
      log(LogLevel::Error, "the launcher has ended; restarting");
      exit_code_ = kExitLauncherLost;
      io_.stop();
    });
    launcher_->start();
    backend_.use_egress(egress_);
    egress_->start();
    asio::co_spawn(
        io_, [this]() -> Task<void> { return serve(); }, asio::detached);
    io_.run();
    return exit_code_;
  }

 private:
  Task<void> serve() {
    auto started = co_await start();
    if (!started) {
      log(LogLevel::Error, "cannot start", {{"error", started.error().message()}});
      exit_code_ = kExitCannotStart;
      io_.stop();
      co_return;
    }
    asio::co_spawn(
        io_, [this]() -> Task<void> { return reload_when_told(); }, asio::detached);
    asio::co_spawn(
        io_, [this]() -> Task<void> { return show_life(); }, asio::detached);
    (void)co_await signals_.async_wait(asio::as_tuple(asio::use_awaitable));
    log(LogLevel::Info, "ending");
    ending_ = true;
    co_await server_.stop(5s);
    co_await manager_->shut_down(config_.on_exit == "stop");
    (void)co_await launcher_->tell(wire::ShutdownRequest{});
    io_.stop();
  }

  Task<void> reload_when_told() {
    for (;;) {
      auto [error, signal] =
          co_await reload_signal_.async_wait(asio::as_tuple(asio::use_awaitable));
      if (error) co_return;
      reload_certificate();
    }
  }

  // A renewed certificate is taken for connections to come; a bad one leaves the present in place.
  void reload_certificate() {
    if (tls_ == nullptr)
      return log(LogLevel::Info, "told to reload; there is nothing to read again");
    auto reloaded = tls_->reload();
    if (reloaded) return log(LogLevel::Info, "the certificate was read again");
    log(LogLevel::Error, "cannot read the certificate again; the present one stays",
        {{"error", reloaded.error().message()}});
  }

  // The first listener is the Unix socket; TLS is for the other.
  Result<void> listen() {
    if (!config_.tls.certificate.empty()) {
      http::TlsOptions options;
      options.certificate_file = config_.tls.certificate;
      options.key_file = config_.tls.key;
      ATOLL_ASSIGN(tls_, http::TlsContext::create(std::move(options)));
    }
    bool local = true;
    for (UniqueFd& listener : prepared_.listeners) {
      ATOLL_TRY(server_.listen_fd(std::move(listener), local ? nullptr : tls_));
      local = false;
    }
    return {};
  }

  // The manager's watchdog watches the thread that answers requests.
  Task<void> show_life() {
    auto interval = prepared_.notifier.watchdog() / 3;
    asio::steady_timer timer(io_);
    while (interval.count() > 0) {
      prepared_.notifier.send("WATCHDOG=1");
      timer.expires_after(interval);
      auto [error] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
      if (error) co_return;
    }
  }

  sandbox::NetworkSource network_source() {
    auto values = [this](const std::string& tenant, const std::vector<std::string>& names) {
      std::map<std::string, std::string> found;
      for (const std::string& name : names) {
        if (auto one = secrets_.open(tenant, {name})) found.merge(*one);
      }
      return found;
    };
    auto seed = [this](const std::string& label) {
      auth::SecretKey key = master_.derive(label);
      auto bytes = key.bytes();
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    auto seal = [this](std::string_view text, const sandbox::Record& of) {
      return policy_box_.seal(text, {of.owner.tenant, of.id});
    };
    auto open = [this](std::string_view text, const sandbox::Record& of) -> Result<std::string> {
      ATOLL_ASSIGN(auth::SecretBytes plain, policy_box_.open(text, {of.owner.tenant, of.id}));
      return std::string(plain.text());
    };
    return {.secrets = values, .seed = seed, .seal = {seal, open}};
  }

  Task<Result<void>> start() {
    ATOLL_CO_TRY(keys_.load());
    ATOLL_CO_TRY(keys_.add_bootstrap(prepared_.api_key));
    ATOLL_CO_TRY(secrets_.load());
    manager_->set_secret_source([this](const std::string& tenant, const sandbox::Spec& spec) {
      return spec.all_secrets ? secrets_.open_all(tenant) : secrets_.open(tenant, spec.secrets);
    });
    manager_->set_network_source(network_source());
    ATOLL_CO_TRY(co_await backend_.start());
    ATOLL_CO_TRY(co_await manager_->start());
    ATOLL_CO_TRY(listen());
    manager_->warm_pool();
    if (auto collected = co_await manager_->collect_templates(); !collected) {
      log(LogLevel::Warning, "cannot discard unused layers",
          {{"error", collected.error().message()}});
    }
    log(LogLevel::Info, "serving",
        {{"socket", config_.run_dir + "/atoll.sock"},
         {"url", prepared_.base_url},
         {"sandboxes", std::to_string(manager_->size())}});
    tell_terminal();
    prepared_.notifier.send("READY=1");
    if (announce_ && config_.ready_fd >= 0) (void)os::write_all(config_.ready_fd, "ready\n");
    co_return Result<void>();
  }

  // For a person who looks on; a log would keep the key.
  void tell_terminal() {
    if (!announce_ || prepared_.base_url.empty() || isatty(STDERR_FILENO) == 0) return;
    std::string lines = "\nClients of E2B reach this server with\n" +
                        api::e2b::client_environment(service_.settings.base_url, prepared_.api_key);
    (void)os::write_all(STDERR_FILENO, lines);
  }

  const config::Config& config_;
  Prepared& prepared_;
  bool announce_;
  asio::io_context io_{1};
  std::unique_ptr<store::Store> store_;
  std::shared_ptr<native::LauncherClient> launcher_;
  std::shared_ptr<native::EgressClient> egress_;
  native::NativeBackend backend_;
  std::shared_ptr<sandbox::Manager> manager_;
  account::Keys keys_;
  account::Secrets secrets_;
  auth::SecretBox policy_box_;
  account::Tokens tokens_;
  const auth::MasterKey& master_;  // in run_server(), which never returns
  std::optional<auth::AuditLog> audit_;
  OnlineBackup backup_;
  MetricsRegistry metrics_;
  api::Service service_;
  std::shared_ptr<http::TlsContext> tls_;
  http::Server server_;
  asio::signal_set signals_;
  asio::signal_set reload_signal_;
  bool ending_ = false;
  int exit_code_ = 0;
};

}  // namespace

void run_server(const config::Config& config, Prepared& prepared, ServerLinks links,
                ServerStart start) {
  prctl(PR_SET_NAME, "atoll-server");
  set_log_component("server");
  raise_descriptor_limit();
  signal(SIGHUP, SIG_IGN);  // until there is somebody to hear it
  auto refuse = [](const Error& error) {
    log(LogLevel::Error, "cannot start", {{"error", error.message()}});
    _exit(kExitCannotStart);
  };
  auto dropped = drop_privileges(prepared.account);
  if (!dropped) refuse(dropped.error());
  os::die_with_parent(start.parent);  // after the change of user, which would undo it
  auto store = store::Store::open(config.data_dir + "/state/atoll.db");
  if (!store) refuse(store.error());
  auto master = auth::MasterKey::load_or_create(config.data_dir + "/state/master.key");
  if (!master) refuse(master.error());
  auto audit = open_audit(config);
  if (!audit) refuse(audit.error());
  auto process =
      std::make_unique<ServerProcess>(config, prepared, std::move(links), std::move(*store),
                                      *master, std::move(*audit), start.announce);
  int code = process->run();
  // Pending coroutines hold references into the process object; the kernel cleans up faster and
  // more safely than their destruction in some order would.
  _exit(code);
}

}  // namespace atl::serve
