// Requests a second on one thread: 64 connections, a small JSON answer, the load on the other core.
// Interleaved with a responder that does nothing but the system calls, as the host is never quiet;
// CPU time a request is the steadier figure.
#include <stdio.h>
#include <stdlib.h>

#include "forked_server.h"
#include "http_load.h"
#include "stats.h"

namespace atl::bench {
namespace {

struct Round {
  double per_second = 0;
  double cpu_us = 0;  // the server's, a request
  double p99_us = 0;
};

Result<Round> measure(const ForkedServer& server, HttpLoad& load, double seconds) {
  double cpu_before = server.cpu_seconds();
  ATOLL_ASSIGN(HttpLoadResult result, load.run(seconds));
  if (result.failures > 0) return fail(ErrorCode::Internal, "answers that are no success");
  Round round;
  round.per_second = result.per_second();
  round.cpu_us = (server.cpu_seconds() - cpu_before) * 1e6 / static_cast<double>(result.responses);
  round.p99_us = result.latency_us.percentile(0.99).value_or(0);
  return round;
}

struct Series {
  Samples per_second, cpu_us, p99_us;
  void add(const Round& round) {
    per_second.add(round.per_second);
    cpu_us.add(round.cpu_us);
    p99_us.add(round.p99_us);
  }
  void print(const char* name) const {
    printf(
        "%-6s requests/s median %7.0f best %7.0f   cpu us/request median %5.2f best %5.2f   "
        "p99 us %6.0f\n",
        name, *per_second.median(), *per_second.percentile(1), *cpu_us.median(),
        *cpu_us.percentile(0), *p99_us.median());
  }
};

Result<void> run(int rounds, double seconds) {
  ATOLL_ASSIGN(ForkedServer raw, ForkedServer::start(serve_raw, 0));
  ATOLL_ASSIGN(ForkedServer server, ForkedServer::start(serve_simple, 0));
  pin_to_cpu(1);
  std::string request = HttpLoadOptions::get("/json");
  ATOLL_ASSIGN(HttpLoad raw_load,
               HttpLoad::connect({.endpoint = raw.endpoint(), .request = request}));
  ATOLL_ASSIGN(HttpLoad load,
               HttpLoad::connect({.endpoint = server.endpoint(), .request = request}));
  Series raw_series;
  Series series;
  for (int i = 0; i < rounds; i++) {
    ATOLL_ASSIGN(Round upper, measure(raw, raw_load, seconds));
    raw_series.add(upper);
    ATOLL_ASSIGN(Round round, measure(server, load, seconds));
    series.add(round);
  }
  raw_series.print("raw");
  series.print("server");
  return {};
}

}  // namespace
}  // namespace atl::bench

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 5;
  double seconds = argc > 2 ? atof(argv[2]) : 2;
  auto done = atl::bench::run(rounds, seconds);
  if (done) return 0;
  fprintf(stderr, "http_throughput: %s\n", done.error().message().c_str());
  return 1;
}
