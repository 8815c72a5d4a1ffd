#include "peers.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "child.h"
#include "stats.h"

namespace atl::bench {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

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

}  // namespace

std::vector<Peer> find_peers(const Workspace& workspace, const DockerDaemon* docker,
                             Report& report) {
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
  if (docker != nullptr) candidates.push_back({"docker", docker->run_command()});
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
