// The server under many clients: requests, creates, bursts, a hostile neighbour, listeners, a
// restart.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <latch>
#include <mutex>
#include <thread>

#include "bench_context.h"
#include "host_processes.h"
#include "http/blocking_socket.h"
#include "http_load.h"
#include "memory.h"
#include "quiet.h"
#include "sandbox_api.h"

namespace atl::bench {
namespace {

constexpr std::string_view kPlain = R"({"ephemeral":true})";

// `count` clients at once, each with a connection that is there before the clock starts.
struct Crowd {
  double seconds = 0;
  size_t failures = 0;
  std::string first_failure;
};

Crowd run_crowd(const std::string& endpoint, unsigned count,
                const std::function<Result<void>(SandboxApi&, unsigned)>& work) {
  Crowd crowd;
  std::mutex mutex;
  std::latch ready(count + 1), go(1);
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < count; i++) {
    threads.emplace_back([&, i] {
      auto api = SandboxApi::connect(endpoint);
      ready.count_down();
      go.wait();
      Result<void> done = api ? work(*api, i) : fail(std::move(api).error());
      if (done) return;
      std::lock_guard lock(mutex);
      if (crowd.failures++ == 0) crowd.first_failure = done.error().message();
    });
  }
  ready.arrive_and_wait();
  Stopwatch watch;
  go.count_down();
  threads.clear();
  crowd.seconds = watch.seconds();
  return crowd;
}

Result<void> require_all(const Crowd& crowd) {
  if (crowd.failures == 0) return {};
  return fail(ErrorCode::Internal,
              std::to_string(crowd.failures) + " clients failed: " + crowd.first_failure);
}

// The process that serves HTTP, below the supervisor.
pid_t server_pid(const BenchContext& context) {
  for (const HostProcess& process : our_processes(context.workspace.cgroup())) {
    std::ifstream file("/proc/" + std::to_string(process.pid) + "/comm");
    std::string name;
    std::getline(file, name);
    if (name == "atoll-server") return process.pid;
  }
  return 0;
}

}  // namespace

Result<void> measure_requests(const BenchContext& context) {
  ATOLL_ASSIGN(SandboxApi api, SandboxApi::connect(context.server.endpoint()));
  ATOLL_ASSIGN(Created created, api.create(kPlain));
  HttpLoadOptions options{.endpoint = context.server.endpoint(),
                          .connections = 64,
                          .request = HttpLoadOptions::get("/v1/sandboxes/" + created.id)};
  ATOLL_ASSIGN(HttpLoad load, HttpLoad::connect(std::move(options)));
  Samples rates;
  for (unsigned i = 0; i < context.options.repetitions; i++) {
    ATOLL_ASSIGN(HttpLoadResult result, load.run(2));
    if (result.failures > 0) return fail(ErrorCode::Internal, "a GET failed");
    rates.add(result.per_second());
  }
  context.report.set("get_per_s", rates.median());
  return api.remove(created.id);
}

Result<void> measure_creates(const BenchContext& context) {
  double limit = context.options.quick ? 2 : 30;
  std::atomic<size_t> cycles = 0;
  Stopwatch watch;
  Crowd crowd =
      run_crowd(context.server.endpoint(), 16, [&](SandboxApi& api, unsigned) -> Result<void> {
        while (watch.seconds() < limit) {
          ATOLL_ASSIGN(Created created, api.create(kPlain));
          ATOLL_TRY(api.remove(created.id));
          cycles++;
        }
        return {};
      });
  ATOLL_TRY(require_all(crowd));
  context.report.set("create_per_s", static_cast<double>(cycles) / crowd.seconds);
  return {};
}

Result<void> measure_burst(const BenchContext& context) {
  Samples bursts;
  for (unsigned round = 0; round < context.options.repetitions; round++) {
    std::vector<std::string> ids(100);
    Crowd crowd =
        run_crowd(context.server.endpoint(), 100, [&](SandboxApi& api, unsigned i) -> Result<void> {
          ATOLL_ASSIGN(Created created, api.create(kPlain));
          ids[i] = created.id;
          ATOLL_TRY(api.exec(created.id, kTrueBody));
          return {};
        });
    ATOLL_TRY(require_all(crowd));
    bursts.add(crowd.seconds * 1000);
    ATOLL_ASSIGN(SandboxApi api, SandboxApi::connect(context.server.endpoint()));
    for (const std::string& id : ids) ATOLL_TRY(api.remove(id));
  }
  context.report.set("burst100_ms", bursts.median());
  return {};
}

static Result<Samples> exec_samples(SandboxApi& api, const std::string& id, unsigned rounds) {
  Samples samples;
  for (unsigned i = 0; i < rounds; i++) {
    Stopwatch watch;
    ATOLL_TRY(api.exec(id, kTrueBody));
    samples.add(watch.us());
  }
  return samples;
}

// Bounded in number and time by themselves: processes by their limit, all by a minute.
Result<void> measure_neighbour(const BenchContext& context) {
  ATOLL_ASSIGN(SandboxApi api, SandboxApi::connect(context.server.endpoint()));
  ATOLL_ASSIGN(Created quiet, api.create(kPlain));
  unsigned rounds = context.options.quick ? 50 : 500;
  // A pool that is filled again after the create above is no idle host; nor is it part of the load.
  wait_quiet(context.workspace);
  ATOLL_ASSIGN(Samples idle, exec_samples(api, quiet.id, rounds));
  constexpr const char* kBombs[] = {
      "bomb() { bomb | bomb & }; bomb; sleep 50",
      "while :; do python3 -c 'x=[bytearray(1<<20) for _ in range(4096)]'; done",
      "yes | head -c 20G"};
  std::vector<std::string> hostile;
  for (const char* bomb : kBombs) {
    ATOLL_ASSIGN(Created box, api.create(R"({"ephemeral":true,"resources":{"cpuCores":1,)"
                                         R"("memoryMB":256,"pids":200}})"));
    hostile.push_back(box.id);
    std::string body = std::string(R"({"timeoutMs":50000,"command":")") + bomb + "\"}";
    auto answer = api.client().request("POST", runtime_path(box.id, "/process/spawn"),
                                       {{"content-type", "application/json"}}, body);
    if (!answer || answer->status != 200) return fail(ErrorCode::Internal, "cannot start a bomb");
  }
  wait_quiet(context.workspace);
  ATOLL_ASSIGN(Samples loaded, exec_samples(api, quiet.id, rounds));
  context.report.set_latency("exec_idle", idle);
  context.report.set_latency("exec_loaded", loaded);
  context.report.set("exec_p99_loaded_vs_idle",
                     ratio(loaded.percentile(0.99), idle.percentile(0.99)));
  for (const std::string& id : hostile) ATOLL_TRY(api.remove(id));
  return api.remove(quiet.id);
}

Result<void> measure_listeners(const BenchContext& context) {
  unsigned wanted = context.options.quick ? 200 : 5000;
  double before = private_kib(server_pid(context));
  std::vector<http::BlockingSocket> listeners;
  std::string request = HttpLoadOptions::get("/v1/events");
  ATOLL_ASSIGN(auto endpoint, http::Endpoint::parse(context.server.endpoint()));
  for (unsigned i = 0; i < wanted; i++) {
    ATOLL_ASSIGN(auto socket, http::BlockingSocket::connect(endpoint, std::chrono::seconds(20)));
    socket.set_timeout(std::chrono::seconds(20));
    ATOLL_TRY(socket.write(http::WriteParts{request}));
    char head[512];
    ATOLL_ASSIGN(size_t size, socket.read(head));
    if (std::string_view(head, size).find("200 OK") == std::string_view::npos) {
      return fail(ErrorCode::Internal, "a listener was refused");
    }
    listeners.push_back(std::move(socket));
  }
  double grown = private_kib(server_pid(context)) - before;
  context.report.set("sse_clients", static_cast<double>(listeners.size()));
  context.report.set("sse_client_kib", grown / wanted);
  return {};
}

Result<void> measure_restart(const BenchContext& context) {
  size_t count = context.options.quick ? 20 : 500;
  ATOLL_ASSIGN(SandboxApi api, SandboxApi::connect(context.server.endpoint()));
  std::vector<std::string> ids;
  for (size_t i = 0; i < count; i++) {
    ATOLL_ASSIGN(Created created, api.create("{}"));
    ids.push_back(created.id);
  }
  Stopwatch watch;
  kill(server_pid(context), SIGKILL);
  std::atomic<size_t> next = 0;
  Crowd crowd =
      run_crowd(context.server.endpoint(), 8, [&](SandboxApi& client, unsigned) -> Result<void> {
        for (size_t i = next++; i < ids.size(); i = next++) {
          ATOLL_TRY(client.exec(ids[i], kTrueBody));
        }
        return {};
      });
  ATOLL_TRY(require_all(crowd));
  context.report.set("restart_ms", watch.seconds() * 1000);
  context.report.note("restart_ms: from kill -9 of the server until each of " +
                      std::to_string(count) + " sandboxes has answered an exec");
  ATOLL_ASSIGN(SandboxApi again, SandboxApi::connect(context.server.endpoint()));
  for (const std::string& id : ids) ATOLL_TRY(again.remove(id));
  return {};
}

}  // namespace atl::bench
