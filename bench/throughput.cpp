// Execs per second, and bytes per second through output and files. MB are 10^6 bytes.
#include <stdlib.h>

#include <algorithm>
#include <vector>

#include "bench_context.h"
#include "exec_clients.h"
#include "sandbox_api.h"

namespace atl::bench {
namespace {

constexpr uint64_t kBytes = uint64_t{1} << 30;
constexpr size_t kBufferBytes = 1 << 20;
constexpr const char* kFile = "/workspace/large";

double mb_per_s(uint64_t bytes, double us) { return static_cast<double>(bytes) / us; }

struct Drained {
  uint64_t bytes = 0;
  double us = 0;  // from the first piece on
};

Result<Drained> drain(http::ResponseStream& response) {
  if (!response.ok()) {
    ATOLL_ASSIGN(std::string text, response.read_all());
    return fail(ErrorCode::Internal,
                "status " + std::to_string(response.status()) + ": " + text.substr(0, 300));
  }
  std::vector<char> buffer(kBufferBytes);
  Drained drained;
  ATOLL_ASSIGN(drained.bytes, response.read(buffer));
  Stopwatch watch;
  for (;;) {
    ATOLL_ASSIGN(size_t got, response.read(buffer));
    if (got == 0) break;
    drained.bytes += got;
  }
  drained.us = watch.us();
  return drained;
}

Result<void> check_complete(const char* what, uint64_t bytes) {
  if (bytes == kBytes) return {};
  return fail(ErrorCode::Internal, std::string(what) + ": " + std::to_string(bytes) + " bytes of " +
                                       std::to_string(kBytes));
}

class Throughput {
 public:
  Throughput(const BenchContext& context, SandboxApi api)
      : context_(context), api_(std::move(api)) {}

  Result<void> run() {
    for (unsigned i = 0; i < kClients; i++) {
      ATOLL_ASSIGN(Created created, api_.create("{}"));
      ids_.push_back(created.id);
    }
    ATOLL_TRY(api_.upload_program(ids_[0], local_probe(), kProbePath));
    for (unsigned i = 0; i < context_.options.repetitions; i++) ATOLL_TRY(rates());
    for (unsigned i = 0; i < context_.options.repetitions; i++) {
      ATOLL_TRY(stream());
      ATOLL_TRY(write());
      ATOLL_TRY(read());
    }
    for (const std::string& id : ids_) ATOLL_TRY(api_.remove(id));
    report();
    return {};
  }

 private:
  Result<void> rates() {
    double seconds = context_.options.quick ? 1 : 2;
    const std::string& endpoint = context_.server.endpoint();
    ATOLL_ASSIGN(double one, exec_rate(endpoint, {ids_[0]}, seconds));
    exec_per_s_.add(one);
    std::string body = std::string(R"({"executable":")") + kProbePath + R"(","args":["rate",")" +
                       std::to_string(kClients) + R"(",")" +
                       std::to_string(static_cast<int>(seconds * 1000)) + R"("]})";
    ATOLL_ASSIGN(std::string output, api_.exec_output(ids_[0], body));
    fork_per_s_.add(strtod(output.c_str(), nullptr));
    ATOLL_ASSIGN(double many, exec_rate(endpoint, ids_, seconds));
    exec_many_per_s_.add(many);
    return {};
  }

  // The command waits a moment, so that nothing is printed before somebody reads: unread output is
  // kept in part only. The clock starts with the first byte.
  Result<void> stream() {
    std::string body = R"({"executable":"/bin/sh","args":["-c","sleep 0.3; exec head -c )" +
                       std::to_string(kBytes) + R"( /dev/zero"]})";
    ATOLL_ASSIGN(auto spawned,
                 api_.client().request("POST", runtime_path(ids_[0], "/process/spawn"),
                                       {{"content-type", "application/json"}}, body));
    constexpr std::string_view kPid = R"("pid":)";
    size_t at = spawned.body.find(kPid);
    if (!spawned.ok() || at == spawned.body.npos) {
      return fail(ErrorCode::Internal, "spawn: " + spawned.body.substr(0, 300));
    }
    std::string pid = std::to_string(atoi(spawned.body.c_str() + at + kPid.size()));
    std::string target = "/process/" + pid + "/output?stream=stdout&follow=true";
    ATOLL_ASSIGN(auto response, api_.client().open("GET", runtime_path(ids_[0], target)));
    ATOLL_ASSIGN(Drained drained, drain(response));
    ATOLL_TRY(check_complete("stream", drained.bytes));
    stream_.add(mb_per_s(drained.bytes, drained.us));
    return {};
  }

  Result<void> write() {
    std::vector<char> buffer(kBufferBytes, 'a');
    std::string target = runtime_path(ids_[0], std::string("/fs/upload") + kFile);
    Stopwatch watch;
    ATOLL_ASSIGN(auto request, api_.client().start("PUT", target, {}, kBytes));
    for (uint64_t sent = 0; sent < kBytes; sent += buffer.size()) {
      ATOLL_TRY(request.write({buffer.data(), buffer.size()}));
    }
    ATOLL_ASSIGN(auto response, request.finish());
    ATOLL_ASSIGN(std::string text, response.read_all());
    double us = watch.us();
    if (!response.ok()) return fail(ErrorCode::Internal, "upload: " + text.substr(0, 300));
    write_.add(mb_per_s(kBytes, us));
    return {};
  }

  Result<void> read() {
    std::string target = runtime_path(ids_[0], std::string("/fs/download") + kFile);
    Stopwatch watch;
    ATOLL_ASSIGN(auto response, api_.client().open("GET", target));
    ATOLL_ASSIGN(Drained drained, drain(response));
    double us = watch.us();
    ATOLL_TRY(check_complete("download", drained.bytes));
    read_.add(mb_per_s(drained.bytes, us));
    target = runtime_path(ids_[0], std::string("/fs") + kFile + "?force=true");
    ATOLL_TRY(api_.client().request("DELETE", target));
    return {};
  }

  void report() {
    Report& report = context_.report;
    report.set("exec_per_s_vs_fork", ratio(exec_per_s_.median(), fork_per_s_.median()));
    report.set("exec_per_s", exec_per_s_.median());
    report.set("fork_per_s", fork_per_s_.median());
    report.set("exec_per_s_8_sandboxes", exec_many_per_s_.median());
    report.set("stream_mb_s", stream_.median());
    report.set("write_mb_s", write_.median());
    report.set("read_mb_s", read_.median());
    report.note("throughput: medians of " + std::to_string(context_.options.repetitions) +
                "; MB are 10^6 bytes; the file goes to the sandbox's disk without fsync");
  }

  const BenchContext& context_;
  SandboxApi api_;
  std::vector<std::string> ids_;
  Samples exec_per_s_, fork_per_s_, exec_many_per_s_, stream_, write_, read_;
};

}  // namespace

Result<void> measure_throughput(const BenchContext& context) {
  ATOLL_ASSIGN(SandboxApi api, SandboxApi::connect(context.server.endpoint()));
  Throughput throughput(context, std::move(api));
  return throughput.run();
}

}  // namespace atl::bench
