// The supervisor starts egress, the launcher and the server, starts all again when one dies, and
// passes on the wish to end. It holds the listening sockets, parses nothing and serves nobody.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <optional>

#include "base/log.h"
#include "egress/process.h"
#include "launcher/config.h"
#include "os/fd_passing.h"
#include "os/parent_death.h"
#include "serve/serve.h"
#include "serve/server_process.h"
#include "serve/setup.h"

extern "C" {
extern const char atoll_agent_begin[];
extern const char atoll_agent_end[];
}

namespace atl::serve {
namespace {

constexpr int kMaxQuickDeaths = 5;
constexpr time_t kQuickSeconds = 10;
constexpr time_t kEndSeconds = 60;  // a graceful end stops sandboxes and syncs their files

struct Family {
  pid_t launcher = 0;
  pid_t server = 0;
  pid_t egress = 0;
};

// Not the time of day, which may be set meanwhile.
time_t uptime_seconds() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

void default_signals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::vector<UniqueFd> copies(const std::vector<UniqueFd>& fds) {
  std::vector<UniqueFd> result;
  for (const UniqueFd& fd : fds) result.emplace_back(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  return result;
}

// The sockets between the three, each end for one of them.
struct Links {
  os::SocketPair server_launcher;  // ours: the launcher's end
  os::SocketPair launcher_egress;  // ours: egress's end
  os::SocketPair server_egress;    // ours: egress's end
};

Result<os::SocketPair> make_stream_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("socketpair");
  return os::SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<Links> make_links() {
  Links links;
  ATOLL_ASSIGN(links.server_launcher, os::make_socket_pair());
  ATOLL_ASSIGN(links.launcher_egress, os::make_socket_pair());
  ATOLL_ASSIGN(links.server_egress, make_stream_pair());
  int buffer = 1 << 20;
  setsockopt(links.server_launcher.ours.get(), SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  return links;
}

void enter_child(Prepared& prepared) {
  default_signals();
  // A terminal's Ctrl-C is for the supervisor; the others end when the server says so.
  setsid();
  prepared.lock.reset();  // the supervisor's; helpers that outlive it must not hold it
}

[[noreturn]] void become_launcher(const config::Config& config, Prepared& prepared, Links links,
                                  pid_t parent) {
  enter_child(prepared);
  os::die_with_parent(parent);
  prepared.listeners.clear();
  prepared.notifier = Notifier();
  launcher::LauncherConfig given;
  given.server = std::move(links.server_launcher.ours);
  given.egress = std::move(links.launcher_egress.theirs);
  links = {};
  given.data_dir = config.data_dir;
  given.run_dir = config.run_dir;
  given.cgroup_name = config.cgroup;
  given.server_uid = prepared.account.uid;
  given.server_gid = prepared.account.gid;
  given.agent = {atoll_agent_begin, static_cast<size_t>(atoll_agent_end - atoll_agent_begin)};
  given.default_limits = config.default_limits;
  given.reserve = config.reserve;
  given.storage_bytes = config.storage_bytes;
  given.steering = config.egress_steering;
  given.criu_dir = find_criu(config.criu);
  launcher::run_launcher(std::move(given));
}

[[noreturn]] void become_egress(const config::Config& config, Prepared& prepared, Links links,
                                pid_t parent) {
  enter_child(prepared);
  prepared.listeners.clear();
  prepared.notifier = Notifier();
  egress::EgressConfig given;
  given.server = std::move(links.server_egress.ours);
  given.launcher = std::move(links.launcher_egress.ours);
  links = {};
  given.uid = prepared.egress.uid;
  given.gid = prepared.egress.gid;
  given.parent = parent;
  given.dns_upstream = config.dns_upstream;
  given.allow_private = config.egress_allow_private;
  given.ca_file = config.egress_ca;
  egress::run_egress(std::move(given));
}

[[noreturn]] void become_server(const config::Config& config, Prepared& prepared, Links links,
                                ServerStart start) {
  enter_child(prepared);
  Prepared own{.account = prepared.account,
               .egress = prepared.egress,
               .api_key = prepared.api_key,
               .base_url = prepared.base_url,
               .listeners = copies(prepared.listeners),
               .lock = {},
               .notifier = std::move(prepared.notifier)};
  prepared.listeners.clear();
  ServerLinks given{.launcher = std::move(links.server_launcher.theirs),
                    .egress = std::move(links.server_egress.theirs)};
  links = {};
  run_server(config, own, std::move(given), start);
}

Result<Family> start_family(const config::Config& config, Prepared& prepared, bool announce) {
  ATOLL_ASSIGN(Links links, make_links());
  Family family;
  pid_t parent = getpid();
  family.egress = fork();
  if (family.egress < 0) return fail_errno("fork", "egress");
  if (family.egress == 0) become_egress(config, prepared, std::move(links), parent);
  family.launcher = fork();
  if (family.launcher < 0) return fail_errno("fork", "launcher");
  if (family.launcher == 0) become_launcher(config, prepared, std::move(links), parent);
  family.server = fork();
  if (family.server < 0) return fail_errno("fork", "server");
  if (family.server == 0) {
    become_server(config, prepared, std::move(links), {.parent = parent, .announce = announce});
  }
  return family;
}

// Waits for `pid` to end, and kills it when it has not after `seconds`.
void await_end(pid_t pid, time_t seconds) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  for (time_t limit = uptime_seconds() + seconds; uptime_seconds() < limit;) {
    if (waitpid(pid, nullptr, WNOHANG) == pid) return;
    timespec slice{.tv_sec = 1, .tv_nsec = 0};
    sigtimedwait(&child, nullptr, &slice);
  }
  log(LogLevel::Warning, "a process does not end by itself and is killed");
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

void end_family(const Family& family, int signal) {
  if (family.server > 0) {
    kill(family.server, signal);
    await_end(family.server, kEndSeconds);
  }
  // The others follow: their sockets have closed.
  if (family.launcher > 0) await_end(family.launcher, kEndSeconds);
  if (family.egress > 0) await_end(family.egress, kEndSeconds);
}

// Returns the member that has ended, or nothing where the wish to end came.
std::optional<pid_t> watch(const Family& family, const sigset_t& signals, int& status) {
  for (;;) {
    for (pid_t pid : {family.server, family.launcher, family.egress}) {
      if (waitpid(pid, &status, WNOHANG) == pid) return pid;
    }
    siginfo_t info{};
    if (sigwaitinfo(&signals, &info) < 0) continue;
    if (info.si_signo == SIGHUP) kill(family.server, SIGHUP);
    if (info.si_signo == SIGTERM || info.si_signo == SIGINT) return std::nullopt;
  }
}

int supervise(const config::Config& config, Prepared& prepared) {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  int quick_deaths = 0;
  for (bool first = true;; first = false) {
    time_t started = uptime_seconds();
    auto family = start_family(config, prepared, first);
    unsetenv("ATOLL_FAILPOINT");  // one death is enough
    if (!family) {
      log(LogLevel::Error, "cannot start", {{"error", family.error().message()}});
      return 1;
    }
    int status = 0;
    auto ended = watch(*family, signals, status);
    if (!ended) {
      prepared.notifier.send("STOPPING=1");
      end_family(*family, SIGTERM);
      return 0;
    }
    bool server_ended = *ended == family->server;
    Family rest = *family;
    bool launcher_ended = *ended == family->launcher;
    (server_ended ? rest.server : (launcher_ended ? rest.launcher : rest.egress)) = 0;
    // Whatever ended, the others cannot go on alone; sandboxes can, and are found again.
    end_family(rest, SIGKILL);
    bool misconfigured = !server_ended && !launcher_ended && WIFEXITED(status) &&
                         WEXITSTATUS(status) == kExitCannotStart;
    if (misconfigured) return 1;
    if (server_ended && WIFEXITED(status) && WEXITSTATUS(status) == kExitCannotStart) return 1;
    quick_deaths = uptime_seconds() - started < kQuickSeconds ? quick_deaths + 1 : 0;
    if (quick_deaths > kMaxQuickDeaths) {
      log(LogLevel::Error, "gave up after ending too often; the lines above say why");
      return 1;
    }
    prepared.notifier.send("WATCHDOG=1");  // the new server's time begins now
    log(LogLevel::Warning, "a process has ended; starting again",
        {{"process", server_ended ? "server" : (launcher_ended ? "launcher" : "egress")},
         {"status", std::to_string(status)}});
  }
}

}  // namespace

int run_serve(const config::Config& config) {
  set_log_component("supervisor");
  set_log_level(log_level_from(config.log_level).value_or(LogLevel::Info));
  set_log_format(log_format_from(config.log_format).value_or(LogFormat::Json));
  if (geteuid() != 0) {
    fprintf(stderr,
            "atoll: serve must be started as root (sudo atoll serve): it makes namespaces "
            "and control groups, then gives up its rights\n");
    return 125;
  }
  auto prepared = prepare(config);
  if (!prepared) {
    fprintf(stderr, "atoll: cannot serve: %s\n", prepared.error().message().c_str());
    return 125;
  }
  int code = supervise(config, *prepared);
  unlink((config.run_dir + "/atoll.sock").c_str());
  return code;
}

}  // namespace atl::serve
