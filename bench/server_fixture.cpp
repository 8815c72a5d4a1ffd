#include "server_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/unique_fd.h"
#include "child.h"

namespace atl::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kReadyTimeoutMs = 60'000;
constexpr double kStopSeconds = 60;

Result<void> import_template(const Options& options, const std::string& data_dir) {
  const char* archive = getenv("ATOLL_TEMPLATE_ARCHIVE");
  if (archive == nullptr) {
    return fail(ErrorCode::InvalidArgument,
                "no template: set ATOLL_TEMPLATE_ARCHIVE (./dev bench does) or give --data-dir");
  }
  return run_child(
      {options.atoll, "template", "import", archive, "--name", "base", "--data-dir", data_dir},
      {.stderr_fd = 2});
}

Result<void> wait_ready(int fd) {
  pollfd polled{fd, POLLIN, 0};
  char text[16];
  if (poll(&polled, 1, kReadyTimeoutMs) == 1 && read(fd, text, sizeof text) > 0) return {};
  return fail(ErrorCode::Unavailable, "the server did not get ready");
}

}  // namespace

Result<Workspace> Workspace::create(const Options& options) {
  Workspace workspace;
  workspace.cgroup_ = "atoll-bench-" + std::to_string(getpid());
  workspace.dir_ = options.work_dir;
  if (workspace.dir_.empty()) {
    char path[] = "/var/tmp/atoll-bench-XXXXXX";
    if (mkdtemp(path) == nullptr) return fail_errno("mkdtemp", path);
    workspace.dir_ = path;
    workspace.private_ = true;
  }
  std::error_code error;
  fs::create_directories(workspace.run_dir(), error);
  // The server's account must reach its socket.
  if (chmod(workspace.dir_.c_str(), 0755) != 0) return fail_errno("chmod", workspace.dir_);
  workspace.data_dir_ = options.data_dir;
  if (options.data_dir.empty()) {
    workspace.data_dir_ = workspace.dir_ + "/data";
    fs::create_directories(workspace.data_dir_, error);
    ATOLL_TRY(import_template(options, workspace.data_dir_));
  }
  return workspace;
}

Workspace::Workspace(Workspace&& other) noexcept
    : dir_(std::move(other.dir_)),
      data_dir_(std::move(other.data_dir_)),
      cgroup_(std::move(other.cgroup_)),
      private_(std::exchange(other.private_, false)) {}

Workspace::~Workspace() {
  if (!private_) return;
  std::error_code error;
  fs::remove_all(dir_, error);
}

Result<std::string> Workspace::root_layer() const {
  std::ifstream file(data_dir_ + "/templates/base.json");
  std::stringstream text;
  text << file.rdbuf();
  boost::json::error_code error;
  boost::json::value value = boost::json::parse(text.str(), error);
  const boost::json::object* object = value.if_object();
  const boost::json::value* layers = object == nullptr ? nullptr : object->if_contains("layers");
  if (error || layers == nullptr || !layers->is_array() || layers->as_array().empty() ||
      !layers->as_array()[0].is_string()) {
    return fail(ErrorCode::Internal, "no layer in " + data_dir_ + "/templates/base.json");
  }
  return data_dir_ + "/layers/" + std::string(layers->as_array()[0].as_string());
}

Result<ServerFixture> ServerFixture::start(const Options& options, const Workspace& workspace) {
  std::vector<std::string> argv = options.server;
  if (argv.empty()) argv = {options.atoll, "serve"};
  for (std::string argument :
       {std::string("--data-dir"), workspace.data_dir(), std::string("--run-dir"),
        workspace.run_dir(), std::string("--listen"), std::string("none"), std::string("--cgroup"),
        workspace.cgroup(), std::string("--pool"), std::to_string(kPool), std::string("--reserve"),
        std::to_string(kReserve), std::string("--on-exit"), std::string("stop"),
        std::string("--ready-fd"), std::string("3")}) {
    argv.push_back(std::move(argument));
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
  // Out of the way of descriptor 3, onto which dup2 would otherwise be a no-op that keeps CLOEXEC.
  UniqueFd ready(ends[0]), theirs(fcntl(ends[1], F_DUPFD_CLOEXEC, 10));
  close(ends[1]);
  UniqueFd log(open(workspace.log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.valid()) return fail_errno("open", workspace.log_path());
  ATOLL_ASSIGN(
      pid_t pid,
      start_child(argv, {.stdout_fd = log.get(), .stderr_fd = log.get(), .pass_fd = theirs.get()}));
  theirs.reset();
  ServerFixture server(pid, "unix:" + workspace.run_dir() + "/atoll.sock");
  ATOLL_TRY(wait_ready(ready.get()));
  return server;
}

ServerFixture::ServerFixture(ServerFixture&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), endpoint_(std::move(other.endpoint_)) {}

ServerFixture::~ServerFixture() { (void)stop(); }

Result<void> ServerFixture::stop() {
  if (pid_ <= 0) return {};
  pid_t pid = std::exchange(pid_, 0);
  auto ended = stop_child(pid, kStopSeconds);
  if (!ended) return fail(std::move(ended).error().context("the server"));
  if (*ended == 0) return {};
  return fail(ErrorCode::Internal, "the server ended with status " + std::to_string(*ended));
}

}  // namespace atl::bench
