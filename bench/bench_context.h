// What every part of the measurement needs.
#pragma once

#include "options.h"
#include "report.h"
#include "server_fixture.h"

namespace atl::bench {

struct BenchContext {
  const Options& options;
  const Workspace& workspace;
  const ServerFixture& server;
  Report& report;
};

// Each deletes every sandbox it has created.
Result<void> measure_latency(const BenchContext& context);
Result<void> measure_throughput(const BenchContext& context);
Result<void> measure_scale(const BenchContext& context);

Result<void> measure_requests(const BenchContext& context);
Result<void> measure_creates(const BenchContext& context);
Result<void> measure_burst(const BenchContext& context);
Result<void> measure_neighbour(const BenchContext& context);
Result<void> measure_listeners(const BenchContext& context);
Result<void> measure_restart(const BenchContext& context);

Result<void> measure_states(const BenchContext& context);
Result<void> measure_docker_commit(const BenchContext& context);
Result<void> measure_import(const BenchContext& context);

// Where the fork probe lies in the sandbox, and the program to put there.
inline constexpr const char* kProbePath = "/workspace/fork_probe";
inline std::string local_probe() { return own_dir() + "/fork_probe"; }

}  // namespace atl::bench
