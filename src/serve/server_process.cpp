#include "serve/server_process.h"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "api/routes.h"
#include "backends/native/native_backend.h"
#include "base/log.h"
#include "base/version.h"
#include "http/server.h"
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

class ServerProcess {
 public:
  ServerProcess(const config::Config& config, Prepared& prepared, UniqueFd launcher,
                std::unique_ptr<store::Store> store, bool announce)
      : config_(config),
        prepared_(prepared),
        announce_(announce),
        store_(std::move(store)),
        launcher_(
            std::make_shared<native::LauncherClient>(io_.get_executor(), std::move(launcher))),
        backend_(io_.get_executor(), launcher_,
                 {.data_dir = config.data_dir, .run_dir = config.run_dir}),
        manager_(std::make_shared<sandbox::Manager>(
            io_.get_executor(), backend_, *store_,
            sandbox::PoolOptions{.target = config.pool, .limits = config.default_limits})),
        context_{.manager = *manager_,
                 .api_key = prepared.api_key,
                 .base_url = prepared.base_url,
                 .templates_dir = config.data_dir + "/templates",
                 .version = kVersion},
        backup_(*store_, config.data_dir),
        server_(io_.get_executor(), make_router()),
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
    asio::co_spawn(
        io_, [this]() -> Task<void> { return serve(); }, asio::detached);
    io_.run();
    return exit_code_;
  }

 private:
  http::Router make_router() {
    http::Router router = api::make_router(context_);
    api::add_backup_route(router, context_, [this] { return backup_.make(); });
    return router;
  }

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
    (void)co_await launcher_->call<wire::LauncherDone>(wire::ShutdownRequest{});
    io_.stop();
  }

  Task<void> reload_when_told() {
    for (;;) {
      auto [error, signal] =
          co_await reload_signal_.async_wait(asio::as_tuple(asio::use_awaitable));
      if (error) co_return;
      log(LogLevel::Info, "told to reload; there is nothing to read again");
    }
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

  Task<Result<void>> start() {
    ATOLL_CO_TRY(co_await backend_.start());
    ATOLL_CO_TRY(co_await manager_->start());
    for (UniqueFd& listener : prepared_.listeners)
      ATOLL_CO_TRY(server_.listen_fd(std::move(listener)));
    manager_->warm_pool();
    log(LogLevel::Info, "serving",
        {{"socket", config_.run_dir + "/atoll.sock"},
         {"url", prepared_.base_url},
         {"sandboxes", std::to_string(manager_->list().size())}});
    prepared_.notifier.send("READY=1");
    if (announce_ && config_.ready_fd >= 0) (void)os::write_all(config_.ready_fd, "ready\n");
    co_return Result<void>();
  }

  const config::Config& config_;
  Prepared& prepared_;
  bool announce_;
  asio::io_context io_{1};
  std::unique_ptr<store::Store> store_;
  std::shared_ptr<native::LauncherClient> launcher_;
  native::NativeBackend backend_;
  std::shared_ptr<sandbox::Manager> manager_;
  api::Context context_;
  OnlineBackup backup_;
  http::Server server_;
  asio::signal_set signals_;
  asio::signal_set reload_signal_;
  bool ending_ = false;
  int exit_code_ = 0;
};

}  // namespace

void run_server(const config::Config& config, Prepared& prepared, UniqueFd launcher,
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
  auto process = std::make_unique<ServerProcess>(config, prepared, std::move(launcher),
                                                 std::move(*store), start.announce);
  int code = process->run();
  // Pending coroutines hold references into the process object; the kernel cleans up faster and
  // more safely than their destruction in some order would.
  _exit(code);
}

}  // namespace atl::serve
