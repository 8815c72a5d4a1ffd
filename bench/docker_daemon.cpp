#include "docker_daemon.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "base/unique_fd.h"
#include "child.h"
#include "host_cgroups.h"
#include "http/client.h"
#include "stats.h"

namespace atl::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kReadySeconds = 30;
constexpr double kStopSeconds = 30;
constexpr useconds_t kReadyPollUs = 20'000;

// $1: a root directory to find programs in, or nothing; the rest: the daemon's command line.
//
// What dockerd and containerd write outside the folders they are told (/etc/docker,
// /opt/containerd, sockets in /run, an AppArmor profile) goes to memory that ends with them. An
// empty /run also keeps dockerd from using a containerd of the host's. The signal is for the case
// that the benchmark itself is killed.
constexpr const char* kStartScript = R"(
set -e
mount -t tmpfs tmpfs /run
if [ -d /sys/kernel/security ]; then mount -t tmpfs tmpfs /sys/kernel/security; fi
for dir in etc opt; do
  mkdir -p "/run/$dir/upper" "/run/$dir/work"
  mount -t overlay -o "lowerdir=/$dir,upperdir=/run/$dir/upper,workdir=/run/$dir/work" overlay "/$dir"
done
if [ -n "$1" ]; then PATH="$1/usr/sbin:$1/usr/bin:$PATH"; fi
shift
exec setpriv --pdeathsig TERM "$@"
)";

std::string environment(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

// Without taking the status from whoever waits for it.
bool has_ended(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == pid;
}

}  // namespace

DockerDaemon::DockerDaemon(const Workspace& workspace)
    : dir_(workspace.dir() + "/docker"),
      cgroup_(workspace.cgroup() + "-docker"),
      programs_(environment("ATOLL_DOCKER_DIR")) {}

DockerDaemon::DockerDaemon(DockerDaemon&& other) noexcept
    : dir_(std::move(other.dir_)),
      cgroup_(std::move(other.cgroup_)),
      programs_(std::move(other.programs_)),
      description_(std::move(other.description_)),
      pid_(std::exchange(other.pid_, 0)) {}

DockerDaemon::~DockerDaemon() { (void)stop(); }

Result<DockerDaemon> DockerDaemon::start(const Workspace& workspace) {
  DockerDaemon daemon(workspace);
  ATOLL_TRY(daemon.launch());
  ATOLL_TRY(daemon.wait_ready());
  ATOLL_TRY(daemon.import_image());
  ATOLL_ASSIGN(
      daemon.description_,
      child_output(daemon.client({"info", "--format", "{{.ServerVersion}}, {{.Driver}}"})));
  while (daemon.description_.ends_with('\n')) daemon.description_.pop_back();
  return daemon;
}

Result<void> DockerDaemon::launch() {
  std::error_code error;
  fs::create_directories(dir_, error);
  // In place of the host's settings.
  std::string config = dir_ + "/daemon.json";
  if (!(std::ofstream(config) << "{}\n"))
    return fail(ErrorCode::Internal, "cannot write " + config);
  UniqueFd log(open(log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.valid()) return fail_errno("open", log_path());
  std::vector<std::string> argv{"unshare", "--mount",    "--net",  "sh",
                                "-c",      kStartScript, "docker", programs_};
  for (const std::string& argument :
       {std::string("dockerd"), "--config-file=" + config, "--data-root=" + dir_ + "/data",
        "--exec-root=" + dir_ + "/exec", "--pidfile=" + dir_ + "/dockerd.pid",
        "--host=unix://" + socket(), "--cgroup-parent=/" + cgroup_,
        std::string("--exec-opt=native.cgroupdriver=cgroupfs"), std::string("--bridge=none"),
        std::string("--iptables=false"), std::string("--ip6tables=false"),
        std::string("--ip-forward=false")}) {
    argv.push_back(argument);
  }
  ATOLL_ASSIGN(pid_, start_child(argv, {.stdout_fd = log.get(), .stderr_fd = log.get()}));
  return {};
}

Result<void> DockerDaemon::wait_ready() const {
  Stopwatch watch;
  while (watch.seconds() < kReadySeconds) {
    if (has_ended(pid_)) {
      return fail(ErrorCode::Unavailable, "dockerd does not start: " + last_line(log_path()));
    }
    // A client anew each time: the socket is not there at first.
    if (auto client = http::Client::create("unix:" + socket()); client) {
      if (auto answer = client->request("GET", "/_ping"); answer && answer->ok()) return {};
    }
    usleep(kReadyPollUs);
  }
  return fail(ErrorCode::Timeout, "dockerd is not ready: " + last_line(log_path()));
}

Result<void> DockerDaemon::import_image() const {
  std::string archive = environment("ATOLL_TEMPLATE_ARCHIVE");
  if (archive.empty()) {
    return fail(ErrorCode::InvalidArgument, "no template to import: set ATOLL_TEMPLATE_ARCHIVE");
  }
  std::vector<std::string> argv{
      "bash",   "-o",   "pipefail", "-c", R"(archive=$1; shift; zstd -dc "$archive" | "$@")",
      "import", archive};
  for (std::string& argument : client({"import", "-", kImage})) argv.push_back(std::move(argument));
  ATOLL_TRY(run_child(argv, {.stderr_fd = 2}));
  // Now, not while something is measured.
  sync();
  return {};
}

// With settings of nobody's: those of the user may name another daemon.
std::vector<std::string> DockerDaemon::client(std::vector<std::string> arguments) const {
  std::vector<std::string> argv{programs_.empty() ? "docker" : programs_ + "/usr/bin/docker",
                                "--config", dir_ + "/client", "--host", "unix://" + socket()};
  for (std::string& argument : arguments) argv.push_back(std::move(argument));
  return argv;
}

std::vector<std::string> DockerDaemon::run_command() const {
  return client({"run", "--rm", "--network", "none", kImage, "/bin/true"});
}

Result<void> DockerDaemon::stop() {
  if (pid_ <= 0) return {};
  auto ended = stop_child(std::exchange(pid_, 0), kStopSeconds);
  remove_cgroups(cgroup_);
  std::error_code error;
  fs::remove_all(dir_, error);
  if (!ended) return fail(std::move(ended).error().context("dockerd"));
  return {};
}

}  // namespace atl::bench
