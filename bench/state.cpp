// States: snapshots, restores, forks, pauses; against docker commit; imports.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "bench_context.h"
#include "child.h"
#include "docker_daemon.h"
#include "quiet.h"
#include "sandbox_api.h"

namespace atl::bench {
namespace {

// A mebibyte a file: a tree of so many.
constexpr unsigned kSmallTree = 1024;
constexpr unsigned kLargeTree = 10 * 1024;
constexpr unsigned kForks = 100;

std::string python(std::string_view program) {
  std::string body = R"({"executable":"python3","args":["-c",")";
  return body + std::string(program) + R"("],"timeoutMs":600000})";
}

std::string fill(unsigned files) {
  return python(
      "import os; b=os.urandom(1<<20); os.makedirs('/workspace/tree')\\n"
      "for i in range(" +
      std::to_string(files) + "): open('/workspace/tree/%d' % i,'wb').write(b)\\n");
}

const std::string kChange = python(
    "import os\\nfor i in range(100):\\n f=os.open('/workspace/tree/%d' % i,os.O_WRONLY); "
    "os.write(f,os.urandom(4096)); os.close(f)\\n");

const std::string kHolder = python(
    "import os,time\\nb=bytearray(os.urandom(100<<20))\\ni=0\\nwhile True:\\n i+=1\\n "
    "open('/tmp/count.new','w').write(str(i)); os.rename('/tmp/count.new','/tmp/count'); "
    "time.sleep(0.001)\\n");
const std::string kCountsOn =
    R"({"executable":"/bin/sh","args":["-c","until c=$(cat /tmp/count) && test -n \"$c\"; do :; done; )"
    R"(while test \"$(cat /tmp/count)\" = \"$c\"; do :; done"]})";

class StateRun {
 public:
  StateRun(const BenchContext& context, SandboxApi api) : context_(context), api_(std::move(api)) {}

  struct Snapshots {
    Samples taken, frozen;
  };

  Result<void> snapshot(const std::string& id, Snapshots& into) {
    ATOLL_TRY(api_.exec(id, kChange));
    Stopwatch watch;
    ATOLL_ASSIGN(std::string answer, api_.post("/v1/sandboxes/" + id + "/snapshots", "{}"));
    into.taken.add(watch.us() / 1000);
    into.frozen.add(find_number(answer, "frozenMicroseconds") / 1000);
    return api_.remove_snapshot(answer);
  }

  // By turns, so that what else the host does meets both.
  Result<void> snapshots(const std::string& small, const std::string& large) {
    Snapshots of_small, of_large;
    for (unsigned round = 0; round < rounds(); round++) {
      ATOLL_TRY(snapshot(small, of_small));
      ATOLL_TRY(snapshot(large, of_large));
    }
    context_.report.set("snapshot_frozen_ms", of_small.frozen.median());
    context_.report.set("snapshot_frozen_large_ms", of_large.frozen.median());
    context_.report.set("snapshot_ms", of_small.taken.median());
    context_.report.set("snapshot_large_ms", of_large.taken.median());
    context_.report.set("snapshot_growth", ratio(of_large.taken.median(), of_small.taken.median()));
    return {};
  }

  Result<void> sizes() {
    context_.report.set("rounds", rounds());
    ATOLL_ASSIGN(Created small, api_.create("{}"));
    ATOLL_TRY(api_.exec(small.id, fill(kSmallTree)));
    ATOLL_ASSIGN(Created large, api_.create("{}"));
    ATOLL_TRY(api_.exec(large.id, fill(context_.options.quick ? 2 * kSmallTree : kLargeTree)));
    sync();
    wait_quiet(context_.workspace);
    ATOLL_TRY(snapshots(small.id, large.id));
    ATOLL_TRY(forks(small.id));
    ATOLL_TRY(many_forks(small.id));
    ATOLL_TRY(restores(small.id));
    ATOLL_TRY(pauses(small.id));
    ATOLL_TRY(api_.remove(large.id));
    ATOLL_TRY(api_.remove(small.id));
    ATOLL_TRY(memory());
    return template_hits();
  }

  Result<void> forks(const std::string& id) {
    Samples all;
    for (unsigned round = 0; round < rounds(); round++) {
      wait_quiet(context_.workspace);
      Stopwatch watch;
      ATOLL_ASSIGN(Created copy, api_.create_by("/v1/sandboxes/" + id + "/fork", "{}"));
      ATOLL_TRY(api_.exec(copy.id, kTrueBody));
      all.add(watch.us() / 1000);
      ATOLL_TRY(api_.remove(copy.id));
    }
    context_.report.set("fork_ms", all.median());
    return {};
  }

  Result<void> many_forks(const std::string& id) {
    Samples all;
    for (unsigned round = 0; round < (context_.options.quick ? 1 : 5); round++) {
      wait_quiet(context_.workspace);
      Stopwatch watch;
      std::string body = R"({"count":)" + std::to_string(kForks) + "}";
      ATOLL_ASSIGN(std::string answer, api_.post("/v1/sandboxes/" + id + "/fork", body));
      std::vector<std::string> copies = find_ids(answer);
      ATOLL_TRY(exec_in_all(copies));
      all.add(watch.us() / 1000);
      for (const std::string& copy : copies) ATOLL_TRY(api_.remove(copy));
    }
    context_.report.set("fork100_ms", all.median());
    return {};
  }

  Result<void> restores(const std::string& id) {
    ATOLL_ASSIGN(std::string kept, api_.post("/v1/sandboxes/" + id + "/snapshots", "{}"));
    std::string body = R"({"snapshotId":")" + find_text(kept, "snapshotId") + R"("})";
    Samples all;
    for (unsigned round = 0; round < rounds(); round++) {
      ATOLL_TRY(api_.exec(id, kChange));
      wait_quiet(context_.workspace);
      Stopwatch watch;
      ATOLL_TRY(api_.post("/v1/sandboxes/" + id + "/restore", body));
      ATOLL_TRY(api_.exec(id, kTrueBody));
      all.add(watch.us() / 1000);
    }
    context_.report.set("restore_ms", all.median());
    return api_.remove_snapshot(kept);
  }

  Result<void> pauses(const std::string& id) {
    Samples paused, resumed;
    for (unsigned round = 0; round < rounds(); round++) {
      Stopwatch pause;
      ATOLL_TRY(api_.post("/v1/sandboxes/" + id + "/pause", "{}"));
      paused.add(pause.us() / 1000);
      Stopwatch resume;
      ATOLL_TRY(api_.post("/v1/sandboxes/" + id + "/resume", "{}"));
      resumed.add(resume.us() / 1000);
    }
    context_.report.set("pause_ms", paused.median());
    context_.report.set("resume_ms", resumed.median());
    return {};
  }

  // A process that holds 100 MiB and counts: for how long it stands still, and how long it takes
  // until a copy of it counts on.
  Result<void> memory() {
    ATOLL_ASSIGN(Created source, api_.create("{}"));
    ATOLL_TRY(api_.post(runtime_path(source.id, "/process/spawn"), kHolder));
    ATOLL_TRY(api_.exec(source.id, kCountsOn));
    Samples frozen, whole, forked;
    for (unsigned round = 0; round < rounds(); round++) {
      wait_quiet(context_.workspace);
      Stopwatch keep;
      ATOLL_ASSIGN(std::string kept,
                   api_.post("/v1/sandboxes/" + source.id + "/checkpoints", "{}"));
      whole.add(keep.us() / 1000);
      frozen.add(find_number(kept, "frozenMicroseconds") / 1000);
      ATOLL_TRY(api_.remove_checkpoint(kept));
      wait_quiet(context_.workspace);
      Stopwatch fork;
      ATOLL_ASSIGN(Created copy,
                   api_.create_by("/v1/sandboxes/" + source.id + "/fork", R"({"memory":true})"));
      ATOLL_TRY(api_.exec(copy.id, kCountsOn));
      forked.add(fork.us() / 1000);
      ATOLL_TRY(api_.remove(copy.id));
    }
    context_.report.set("mem_checkpoint_ms", frozen.median());
    context_.report.set("mem_checkpoint_total_ms", whole.median());
    context_.report.set("mem_fork_ms", forked.median());
    return api_.remove(source.id);
  }

  // Asks for a template that was built of the same before.
  Result<void> template_hits() {
    constexpr std::string_view body =
        R"({"name":"bench-known","from":"base","bootstrap":"echo made > /workspace/made"})";
    ATOLL_TRY(api_.post("/v1/templates", body));
    Samples all;
    for (unsigned round = 0; round < rounds(); round++) {
      Stopwatch watch;
      ATOLL_ASSIGN(std::string answer, api_.post("/v1/templates", body));
      all.add(watch.us() / 1000);
      if (answer.find(R"("reused":true)") == std::string::npos) {
        return fail(ErrorCode::Internal, "a known template was built again: " + answer);
      }
    }
    context_.report.set("template_hit_ms", all.median());
    return api_.remove_template("bench-known");
  }

  // Keep the state of a running one and run a command in a new one from it.
  Result<void> against_docker() {
    auto started = DockerDaemon::start(context_.workspace);
    if (!started) {
      context_.report.note("copy_vs_docker_commit: none: " + started.error().message());
      return {};
    }
    DockerDaemon& docker = *started;
    ATOLL_TRY(run_child(docker.command({"run", "-d", "--name", "source", "--network", "none",
                                        DockerDaemon::kImage, "sleep", "1000"})));
    ATOLL_ASSIGN(Created source, api_.create("{}"));
    Samples ours, theirs;
    for (unsigned round = 0; round < std::min(rounds(), 50u); round++) {
      std::string image = "copy:" + std::to_string(round);
      Stopwatch watch;
      ATOLL_TRY(run_child(docker.command({"commit", "source", image})));
      ATOLL_TRY(
          run_child(docker.command({"run", "--rm", "--network", "none", image, "/bin/true"})));
      theirs.add(watch.us() / 1000);
      wait_quiet(context_.workspace);
      Stopwatch own;
      ATOLL_ASSIGN(std::string kept, api_.post("/v1/sandboxes/" + source.id + "/snapshots", "{}"));
      std::string body = R"({"fromSnapshot":")" + find_text(kept, "snapshotId") + R"("})";
      ATOLL_ASSIGN(Created copy, api_.create(body));
      ATOLL_TRY(api_.exec(copy.id, kTrueBody));
      ours.add(own.us() / 1000);
      ATOLL_TRY(api_.remove(copy.id));
      ATOLL_TRY(api_.remove_snapshot(kept));
    }
    (void)run_child(docker.command({"rm", "-f", "source"}));
    context_.report.set("docker_commit_run_ms", theirs.median());
    context_.report.set("snapshot_create_exec_ms", ours.median());
    context_.report.set("copy_vs_docker_commit", ratio(theirs.median(), ours.median()));
    ATOLL_TRY(api_.remove(source.id));
    return docker.stop();
  }

 private:
  unsigned rounds() const { return context_.options.quick ? 5 : 50; }

  Result<void> exec_in_all(const std::vector<std::string>& ids) {
    std::atomic<size_t> next = 0, failed = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; i++) {
      threads.emplace_back([&] {
        auto api = SandboxApi::connect(context_.server.endpoint());
        for (size_t at = next++; at < ids.size(); at = next++) {
          if (!api || !api->exec(ids[at], kTrueBody)) failed++;
        }
      });
    }
    threads.clear();
    if (failed == 0 && ids.size() == kForks) return {};
    return fail(ErrorCode::Internal, "a copy does not answer");
  }

  const BenchContext& context_;
  SandboxApi api_;
};

}  // namespace

Result<void> measure_states(const BenchContext& context) {
  ATOLL_ASSIGN(SandboxApi api, SandboxApi::connect(context.server.endpoint()));
  return StateRun(context, std::move(api)).sizes();
}

Result<void> measure_docker_commit(const BenchContext& context) {
  ATOLL_ASSIGN(SandboxApi api, SandboxApi::connect(context.server.endpoint()));
  return StateRun(context, std::move(api)).against_docker();
}

Result<void> measure_import(const BenchContext& context) {
  namespace fs = std::filesystem;
  const char* archive = getenv("ATOLL_TEMPLATE_ARCHIVE");
  if (archive == nullptr) return fail(ErrorCode::InvalidArgument, "no ATOLL_TEMPLATE_ARCHIVE");
  std::string tar = context.workspace.dir() + "/rootfs.tar";
  ATOLL_TRY(run_child({"zstd", "-q", "-d", "-f", archive, "-o", tar}));
  double megabytes = static_cast<double>(fs::file_size(tar)) / 1e6;
  Samples rates;
  for (unsigned i = 0; i < context.options.repetitions; i++) {
    std::string data = context.workspace.dir() + "/import-" + std::to_string(i);
    Stopwatch watch;
    ATOLL_TRY(run_child({context.options.atoll, "template", "import", tar, "--name", "base",
                         "--data-dir", data, "--quiet"},
                        {.stderr_fd = 2}));
    rates.add(megabytes / watch.seconds());
    std::error_code ignored;
    fs::remove_all(data, ignored);
  }
  context.report.set("import_mb_s", rates.median());
  return {};
}

}  // namespace atl::bench
