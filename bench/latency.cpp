// All latency variants, interleaved: each round takes every variant once, in random order, so that
// a busy moment of the host hits all of them alike.
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <sstream>

#include "bench_context.h"
#include "child.h"
#include "docker_daemon.h"
#include "peers.h"
#include "sandbox_api.h"

namespace atl::bench {
namespace {

// Execs, and rounds of the fork probe, in one turn; one more goes before them unmeasured.
constexpr int kExecsPerTurn = 5;
// Before each turn, so that nobody pays for what the one before left behind: refilling of the pool
// and of the launcher's reserve, removal of namespaces.
constexpr useconds_t kSettleUs = 10'000;
// Between the starts of two creations; the reserve cannot be seen from outside.
constexpr double kCreateGapUs = 20'000;
constexpr double kPoolWaitSeconds = 10;

// A limit on every controller.
constexpr std::string_view kColdBody =
    R"({"pool":false,"ephemeral":true,"resources":{"cpuCores":1,"memoryMB":512,"pids":256}})";
constexpr std::string_view kColdDefaultBody = R"({"pool":false,"ephemeral":true})";

class LatencyRun {
 public:
  LatencyRun(const BenchContext& context, SandboxApi api)
      : context_(context), api_(std::move(api)) {}

  Result<void> run() {
    ATOLL_ASSIGN(Created created, api_.create("{}"));
    sandbox_ = created.id;
    ATOLL_TRY(api_.upload_program(sandbox_, local_probe(), kProbePath));
    start_docker();
    add_variants();
    std::mt19937 random(std::random_device{}());
    // The first two rounds warm caches.
    for (unsigned round = 0; round < context_.options.rounds + 2; round++) {
      if (round == 2) samples_.clear();
      std::shuffle(variants_.begin(), variants_.end(), random);
      for (const auto& variant : variants_) {
        ATOLL_TRY(settle());
        ATOLL_TRY(variant());
      }
    }
    ATOLL_TRY(api_.remove(sandbox_));
    stop_docker();
    report();
    return {};
  }

 private:
  void start_docker() {
    auto started = DockerDaemon::start(context_.workspace);
    if (!started) {
      context_.report.note("run_vs_docker: none: " + started.error().message());
      return;
    }
    docker_.emplace(std::move(*started));
    context_.report.note("docker: " + docker_->description() +
                         ", a daemon of this run's own, --network none, the same files as image");
  }

  void stop_docker() {
    if (!docker_) return;
    if (auto stopped = docker_->stop(); !stopped) context_.report.note(stopped.error().message());
  }

  void add_variants() {
    variants_.push_back([this] { return exec_turn(); });
    variants_.push_back([this] { return fork_turn(); });
    variants_.push_back([this] { return cycle("cold", kColdBody); });
    variants_.push_back([this] { return cycle("cold_default", kColdDefaultBody); });
    variants_.push_back([this] { return cycle("warm", "{}"); });
    const DockerDaemon* docker = docker_ ? &*docker_ : nullptr;
    for (Peer& peer : find_peers(context_.workspace, docker, context_.report)) {
      variants_.push_back([this, peer = std::move(peer)]() -> Result<void> {
        ATOLL_ASSIGN(double us, time_peer(peer));
        samples_[peer.name].add(us);
        return {};
      });
    }
  }

  Result<void> settle() {
    reap_orphans({context_.server.pid(), docker_ ? docker_->pid() : 0});
    Stopwatch watch;
    for (;;) {
      ATOLL_ASSIGN(unsigned size, api_.pool_size());
      if (size >= ServerFixture::kPool) break;
      if (watch.seconds() > kPoolWaitSeconds) {
        return fail(ErrorCode::Timeout, "the pool does not fill again");
      }
      usleep(1'000);
    }
    usleep(kSettleUs);
    return {};
  }

  Result<void> exec_turn() {
    Stopwatch first;
    ATOLL_TRY(api_.exec(sandbox_, kTrueBody));
    samples_["exec_first"].add(first.us());
    for (int i = 0; i < kExecsPerTurn; i++) {
      Stopwatch watch;
      ATOLL_ASSIGN(std::string answer, api_.exec(sandbox_, kTrueBody));
      samples_["exec"].add(watch.us());
      samples_["exec_in_agent"].add(find_number(answer, "durationMicroseconds"));
    }
    return {};
  }

  Result<void> fork_turn() {
    std::string body = std::string(R"({"executable":")") + kProbePath + R"(","args":["rounds",")" +
                       std::to_string(kExecsPerTurn) + R"("]})";
    ATOLL_ASSIGN(std::string output, api_.exec_output(sandbox_, body));
    std::istringstream lines(output);
    for (double us; lines >> us;) samples_["fork"].add(us);
    return {};
  }

  // Create, exec, delete: as a client sees it that waits for each.
  Result<void> cycle(const std::string& name, std::string_view body) {
    double since = last_create_.us();
    if (since < kCreateGapUs) usleep(static_cast<useconds_t>(kCreateGapUs - since));
    last_create_ = Stopwatch();
    Stopwatch whole;
    ATOLL_ASSIGN(Created created, api_.create(body));
    double create_us = whole.us();
    ATOLL_TRY(api_.exec(created.id, kTrueBody));
    double exec_us = whole.us();
    ATOLL_TRY(api_.remove(created.id));
    double all_us = whole.us();
    if (created.from_pool != (name == "warm")) {
      misses_++;
      return {};
    }
    samples_[name + "_create"].add(create_us);
    samples_[name + "_create_in_server"].add(created.server_us);
    samples_[name + "_first_exec"].add(exec_us - create_us);
    samples_[name + "_delete"].add(all_us - exec_us);
    samples_[name + "_cycle"].add(all_us);
    return {};
  }

  std::optional<double> p50(const std::string& name) { return samples_[name].median(); }

  void report() {
    Report& report = context_.report;
    report.set("exec_vs_fork", ratio(p50("exec"), p50("fork")));
    if (p50("exec") && p50("fork")) report.set("exec_added_us", *p50("exec") - *p50("fork"));
    report.set("cold_vs_bwrap", ratio(p50("cold_cycle"), p50("bwrap")));
    if (auto us = p50("warm_create")) report.set("warm_create_ms", *us / 1000);
    report.set("run_vs_docker", ratio(p50("docker"), p50("warm_cycle")));
    report.set("run_vs_docker_cold", ratio(p50("docker"), p50("cold_cycle")));
    report.set("cold_vs_bwrap_host_root", ratio(p50("cold_cycle"), p50("bwrap_host_root")));
    report.set("cold_default_vs_bwrap", ratio(p50("cold_default_cycle"), p50("bwrap")));
    report.set("cold_vs_runc", ratio(p50("cold_cycle"), p50("runc")));
    report.set("warm_vs_runc", ratio(p50("warm_cycle"), p50("runc")));
    for (const auto& [name, samples] : samples_) {
      if (samples.size() > 0) report.set_latency(name, samples);
    }
    report.set("pool_misses", misses_);
    report.note(
        "latency: variants in random order within each round; before each turn the pool is "
        "full (GET /v1/system) and 10 ms pass, between two creations at least 20 ms");
    report.note("exec and fork: " + std::to_string(kExecsPerTurn) +
                " in a turn after one unmeasured; exec_first is that one; exec_in_agent and "
                "create_in_server: what the answers say");
    report.note(
        "bwrap: the template's layer read-only as its root, no /proc, no /dev, no limits; "
        "bwrap_host_root: the host's root; cold: limits for cpu, memory and pids, ephemeral");
    report.note("run_vs_docker: against create from the pool, exec, delete; _cold: without pool");
  }

  const BenchContext& context_;
  SandboxApi api_;
  std::optional<DockerDaemon> docker_;
  std::string sandbox_;
  std::vector<std::function<Result<void>()>> variants_;
  std::map<std::string, Samples> samples_;
  Stopwatch last_create_;
  int misses_ = 0;
};

}  // namespace

Result<void> measure_latency(const BenchContext& context) {
  context.report.set("rounds", context.options.rounds);
  ATOLL_ASSIGN(SandboxApi api, SandboxApi::connect(context.server.endpoint()));
  LatencyRun run(context, std::move(api));
  return run.run();
}

}  // namespace atl::bench
