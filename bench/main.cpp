// Measures a server of its own against the project's goals. A missed goal is a result, not a
// failure; the exit code is for what could not be measured.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <optional>

#include "bench_context.h"
#include "child.h"
#include "leak_count.h"
#include "sandbox_api.h"

namespace atl::bench {
namespace {

void report_host(Report& report, const char* when) {
  double load[1] = {0};
  getloadavg(load, 1);
  report.set(std::string("load_") + when, load[0]);
}

void describe_host(const Options& options, Report& report) {
  utsname host{};
  uname(&host);
  report.note(std::string("kernel ") + host.release);
  report.set("cpus", static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)));
  report_host(report, "before");
  if (options.quick) report.note("quick: too few rounds and sandboxes to judge by");
}

double growth(size_t now, size_t before) {
  return static_cast<double>(now) - static_cast<double>(before);
}

struct Part {
  const char* name;
  Result<void> (*measure)(const BenchContext&);
};
#ifdef ATOLL_BENCH_SERVICE
constexpr Part kParts[] = {{"requests", measure_requests},   {"creates", measure_creates},
                           {"burst", measure_burst},         {"neighbour", measure_neighbour},
                           {"listeners", measure_listeners}, {"restart", measure_restart}};
#elif defined(ATOLL_BENCH_STATE)
constexpr Part kParts[] = {
    {"states", measure_states}, {"docker", measure_docker_commit}, {"import", measure_import}};
#else
constexpr Part kParts[] = {
    {"latency", measure_latency}, {"throughput", measure_throughput}, {"scale", measure_scale}};
#endif

Result<void> measure(const BenchContext& context) {
  std::optional<Error> first;
  for (const Part& part : kParts) {
    if (!context.options.wants(part.name)) continue;
    fprintf(stderr, "==> %s\n", part.name);
    if (auto done = part.measure(context); !done) {
      fprintf(stderr, "atoll_bench: %s: %s\n", part.name, done.error().message().c_str());
      if (!first) first = std::move(done).error().context(part.name);
    }
  }
  if (first) return fail(std::move(*first));
  return {};
}

// Each part deletes what it creates, unless it fails.
Result<void> remove_leftovers(const ServerFixture& server) {
  ATOLL_ASSIGN(SandboxApi api, SandboxApi::connect(server.endpoint()));
  return api.remove_all();
}

Result<void> run_server_and_measure(const Options& options, Workspace& workspace, Report& report) {
  LeakCount before = count_leaks(workspace);
  HostTotals host_before = host_totals();
  ATOLL_ASSIGN(ServerFixture server, ServerFixture::start(options, workspace));
  Result<void> measured = measure({options, workspace, server, report});
  Result<void> cleared = remove_leftovers(server);
  (void)wait_for_sweeper(workspace);
  Stopwatch watch;
  Result<void> stopped = server.stop();
  report.set("server_stop_seconds", watch.seconds());
  LeakCount left = settle_leaks(workspace, before);
  report_leaks(left, report);
  // Nothing is removed below a mount that should not be there.
  if (left.total() > 0) workspace.keep();
  HostTotals host = host_totals();
  report.set("host_mounts_growth", growth(host.mounts, host_before.mounts));
  report.set("host_namespaces_growth", growth(host.namespaces, host_before.namespaces));
  ATOLL_TRY(measured);
  ATOLL_TRY(cleared);
  return stopped;
}

Result<void> run(const Options& options, Report& report) {
  ATOLL_ASSIGN(Workspace workspace, Workspace::create(options));
  describe_host(options, report);
  Result<void> done = run_server_and_measure(options, workspace, report);
  report_host(report, "after");
  if (!done) {
    workspace.keep();
    fprintf(stderr, "atoll_bench: the server's log is %s\n", workspace.log_path().c_str());
  }
  return done;
}

}  // namespace
}  // namespace atl::bench

int main(int argc, char** argv) {
  using namespace atl::bench;
  auto options = parse_options(argc, argv);
  if (!options) {
    fprintf(stderr, "%s", options.error().message().c_str());
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  become_subreaper();
  Report report;
  auto done = run(*options, report);
  report.print();
  if (!options->json.empty()) {
    if (auto written = report.write_json(options->json); !written && done) {
      done = std::move(written);
    }
  }
  if (done) return 0;
  fprintf(stderr, "atoll_bench: %s\n", done.error().message().c_str());
  return 1;
}
