#include "exec_clients.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "stats.h"

namespace atl::bench {
namespace {

class FirstError {
 public:
  void note(Error error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_ = true;
  }
  bool failed() const { return failed_; }
  Result<void> result() {
    if (error_) return fail(std::move(*error_));
    return {};
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> failed_ = false;
  std::optional<Error> error_;
};

Result<void> run_clients(const std::string& endpoint,
                         const std::function<Result<void>(SandboxApi&, unsigned)>& client) {
  FirstError error;
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < kClients; i++) {
    threads.emplace_back([&, i] {
      auto api = SandboxApi::connect(endpoint);
      if (!api) return error.note(std::move(api).error());
      if (auto done = client(*api, i); !done) error.note(std::move(done).error());
    });
  }
  threads.clear();
  return error.result();
}

}  // namespace

Result<double> exec_rate(const std::string& endpoint, const std::vector<std::string>& ids,
                         double seconds) {
  std::atomic<size_t> total = 0;
  Stopwatch watch;
  ATOLL_TRY(run_clients(endpoint, [&](SandboxApi& api, unsigned index) -> Result<void> {
    while (watch.seconds() < seconds) {
      ATOLL_TRY(api.exec(ids[index % ids.size()], kTrueBody));
      total++;
    }
    return {};
  }));
  return static_cast<double>(total) / watch.seconds();
}

Result<void> for_each_parallel(const std::string& endpoint, size_t count,
                               const std::function<Result<void>(SandboxApi&, size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  return run_clients(endpoint, [&](SandboxApi& api, unsigned) -> Result<void> {
    for (size_t index; !failed && (index = next++) < count;) {
      if (auto done = work(api, index); !done) {
        failed = true;
        return done;
      }
    }
    return {};
  });
}

}  // namespace atl::bench
