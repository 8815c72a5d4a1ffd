// Many sandboxes at once: what an idle one takes, whether all answer, how fast they go.
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <vector>

#include "bench_context.h"
#include "exec_clients.h"
#include "host_processes.h"
#include "leak_count.h"
#include "memory.h"
#include "quiet.h"
#include "sandbox_api.h"

namespace atl::bench {
namespace {

constexpr double kAccountSeconds = 5;

class Scale {
 public:
  Scale(const BenchContext& context, SandboxApi api) : context_(context), api_(std::move(api)) {}

  Result<void> run() {
    ATOLL_TRY(measure_idle());
    ATOLL_TRY(measure_live());
    return measure_delete();
  }

 private:
  size_t processes_in_sandboxes() const {
    size_t count = 0;
    for (const HostProcess& process : our_processes(context_.workspace.cgroup())) {
      count += process.in_sandbox ? 1 : 0;
    }
    return count;
  }

  Result<void> create_up_to(size_t count) {
    size_t missing = count > ids_.size() ? count - ids_.size() : 0;
    std::mutex mutex;
    return for_each_parallel(context_.server.endpoint(), missing,
                             [&](SandboxApi& api, size_t) -> Result<void> {
                               ATOLL_ASSIGN(Created created, api.create("{}"));
                               std::lock_guard lock(mutex);
                               ids_.push_back(std::move(created.id));
                               return {};
                             });
  }

  Result<void> measure_idle() {
    wait_quiet(context_.workspace);
    KernelMemory kernel_before = kernel_memory();
    AgentMemory agents_before = agent_memory(context_.workspace.cgroup());
    Stopwatch watch;
    ATOLL_TRY(create_up_to(context_.options.idle_sandboxes));
    double seconds = watch.seconds();
    wait_quiet(context_.workspace);
    KernelMemory kernel = kernel_memory();
    AgentMemory agents = agent_memory(context_.workspace.cgroup());
    if (agents.processes <= agents_before.processes) {
      return fail(ErrorCode::Internal, "no process of the new sandboxes is to be found");
    }
    auto made = static_cast<double>(agents.processes - agents_before.processes);
    double user = (agents.private_kib - agents_before.private_kib) / made;
    double in_kernel = (kernel.total_kib() - kernel_before.total_kib()) / made;
    Report& report = context_.report;
    double slab = (kernel.slab_kib - kernel_before.slab_kib) / made;
    report.set("idle_kib", user + slab);
    report.set("idle_total_kib", user + in_kernel);
    report.set("idle_private_kib", user);
    report.set("idle_slab_kib", slab);
    report.set("idle_slab_unreclaimable_kib",
               (kernel.slab_unreclaimable_kib - kernel_before.slab_unreclaimable_kib) / made);
    report.set("idle_page_tables_kib",
               (kernel.page_tables_kib - kernel_before.page_tables_kib) / made);
    report.set("idle_kernel_stack_kib",
               (kernel.kernel_stack_kib - kernel_before.kernel_stack_kib) / made);
    report.set("idle_percpu_kib", (kernel.percpu_kib - kernel_before.percpu_kib) / made);
    report.set("idle_server_kib", (agents.server_kib - agents_before.server_kib) / made);
    report.set("idle_sandboxes", made);
    report.set("create_per_s", static_cast<double>(ids_.size()) / seconds);
    report.note(
        "idle: growth of the host's Slab, PageTables, KernelStack and Percpu (so other "
        "work on the host counts in) plus private pages, by the growth in agents, the "
        "pool's included; the server's own growth (idle_server_kib) is not in the sum");
    return {};
  }

  Result<void> measure_live() {
    auto created = create_up_to(context_.options.live_sandboxes);
    if (!created) context_.report.note("live: a create failed: " + created.error().message());
    std::mutex mutex;
    size_t answered = 0;
    std::string first_error;
    Samples times;
    ATOLL_TRY(for_each_parallel(context_.server.endpoint(), ids_.size(),
                                [&](SandboxApi& api, size_t i) -> Result<void> {
                                  Stopwatch watch;
                                  auto done = api.exec(ids_[i], kTrueBody);
                                  double us = watch.us();
                                  std::lock_guard lock(mutex);
                                  if (done) {
                                    answered++;
                                    times.add(us);
                                  } else if (first_error.empty()) {
                                    first_error = done.error().message();
                                  }
                                  return {};
                                }));
    if (!first_error.empty()) context_.report.note("live: an exec failed: " + first_error);
    context_.report.set("live", static_cast<double>(answered));
    context_.report.set_latency("live_exec", times);
    return {};
  }

  Result<void> measure_delete() {
    Stopwatch watch;
    ATOLL_TRY(for_each_parallel(
        context_.server.endpoint(), ids_.size(),
        [&](SandboxApi& api, size_t i) -> Result<void> { return api.remove(ids_[i]); }));
    double seconds = watch.seconds();
    Report& report = context_.report;
    report.set("delete_per_s", static_cast<double>(ids_.size()) / seconds);
    report.set("trash_left", static_cast<double>(wait_for_sweeper(context_.workspace)));
    report.set("delete_and_sweep_seconds", watch.seconds());
    wait_quiet(context_.workspace);
    ATOLL_ASSIGN(unsigned sandboxes, api_.sandbox_count());
    report.set("sandboxes_after_delete", sandboxes);
    ATOLL_ASSIGN(double forgotten, agents_unaccounted_for());
    report.set("agents_unaccounted_for", forgotten);
    return {};
  }

  // More agents than the pool and the reserve explain were forgotten while the server lives. One
  // that is being built may be seen in between, so it has a few seconds.
  Result<double> agents_unaccounted_for() {
    Stopwatch watch;
    for (;;) {
      ATOLL_ASSIGN(unsigned sandboxes, api_.sandbox_count());
      ATOLL_ASSIGN(unsigned pool, api_.pool_size());
      double excess = static_cast<double>(processes_in_sandboxes()) - pool - sandboxes -
                      ServerFixture::kReserve;
      if (excess <= 0 || watch.seconds() > kAccountSeconds) return std::max(0.0, excess);
      usleep(200'000);
    }
  }

  const BenchContext& context_;
  SandboxApi api_;
  std::vector<std::string> ids_;
};

}  // namespace

Result<void> measure_scale(const BenchContext& context) {
  ATOLL_ASSIGN(SandboxApi api, SandboxApi::connect(context.server.endpoint()));
  Scale scale(context, std::move(api));
  return scale.run();
}

}  // namespace atl::bench
