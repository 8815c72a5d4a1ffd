#include "peers.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/unique_fd.h"
#include "child.h"
#include "stats.h"

namespace atl::bench {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

Result<std::string> output_of(const std::vector<std::string>& argv) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  ATOLL_ASSIGN(pid_t pid, start_child(argv, {.stdout_fd = theirs.get()}));
  theirs.reset();
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ours.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  ATOLL_ASSIGN(int status, wait_child(pid));
  if (status != 0) return fail(ErrorCode::Unavailable, argv[0] + " failed");
  return text;
}

// What `runc spec` writes, with the template's files as its root and one command to run.
Result<void> write_bundle(const std::string& dir, const std::string& layer,
                          const std::string& cgroup) {
  std::error_code ignored;
  fs::remove_all(dir, ignored);
  fs::create_directories(dir, ignored);
  ATOLL_TRY(run_child({"runc", "spec", "--bundle", dir}));
  std::string path = dir + "/config.json";
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  boost::system::error_code error;
  json::value config = json::parse(text.str(), error);
  if (error) return fail(ErrorCode::Internal, "cannot parse " + path);
  json::value* process = config.find_pointer("/process", error);
  json::value* root = config.find_pointer("/root", error);
  json::value* isolation = config.find_pointer("/linux", error);
  if (process == nullptr || root == nullptr || isolation == nullptr) {
    return fail(ErrorCode::Internal, "unknown shape of " + path);
  }
  process->as_object()["terminal"] = false;
  process->as_object()["args"] = json::array{"/bin/true"};
  root->as_object()["path"] = layer;
  isolation->as_object()["cgroupsPath"] = "/" + cgroup + "-runc";
  std::ofstream(path) << json::serialize(config);
  return {};
}

std::optional<Peer> find_docker(Report& report) {
  auto images = output_of({"docker", "image", "ls", "--format", "{{.ID}}"});
  if (!images) {
    report.note("run_vs_docker: no Docker daemon is up");
    return std::nullopt;
  }
  std::string image = images->substr(0, images->find('\n'));
  if (image.empty()) {
    report.note("run_vs_docker: Docker has no image");
    return std::nullopt;
  }
  return Peer{"docker", {"docker", "run", "--rm", image, "true"}};
}

}  // namespace

std::vector<Peer> find_peers(const Workspace& workspace, Report& report) {
  std::vector<Peer> candidates{
      {"host_spawn", {"/bin/true"}},
      {"bwrap_host_root",
       {"bwrap", "--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "/bin/true"}}};
  if (auto layer = workspace.root_layer()) {
    candidates.push_back(
        {"bwrap",
         {"bwrap", "--ro-bind", *layer, "/", "--unshare-all", "--die-with-parent", "/bin/true"}});
    std::string bundle = workspace.dir() + "/runc-bundle";
    if (auto made = write_bundle(bundle, *layer, workspace.cgroup()); made) {
      candidates.push_back({"runc",
                            {"runc", "--root", workspace.dir() + "/runc-state", "run", "--bundle",
                             bundle, workspace.cgroup()}});
    } else {
      report.note("runc: " + made.error().message());
    }
  }
  if (auto docker = find_docker(report)) candidates.push_back(std::move(*docker));
  std::vector<Peer> peers;
  for (Peer& peer : candidates) {
    if (auto tried = run_child(peer.argv, {.stderr_fd = 2}); tried) {
      peers.push_back(std::move(peer));
    } else {
      report.note(peer.name + " does not run here: " + tried.error().message());
    }
  }
  return peers;
}

Result<double> time_peer(const Peer& peer) {
  Stopwatch watch;
  ATOLL_TRY(run_child(peer.argv));
  return watch.us();
}

}  // namespace atl::bench
