// One thread for work that blocks, such as the database. Jobs run in order; those that pile up
// while it is busy are handed over together.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "async/one_shot.h"
#include "atoll/result.h"

namespace atl::async {

// Whether a job may share its batch, or is run between batches, without what wraps them.
enum class Company : uint8_t { Shared, Alone };

class WorkerThread {
 public:
  struct Job {
    std::function<void()> work;                     // on the worker
    std::function<void(const Result<void>&)> done;  // on the worker too, after the whole batch
    Company company = Company::Shared;
  };
  // Wraps a batch: is given a function that runs the jobs, and says whether the batch holds.
  using Around = std::function<Result<void>(const std::function<void()>&)>;
  explicit WorkerThread(Around around);
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Runs `work`, which returns a Result, over there and resumes the caller here with what it
  // returned, or with the batch's failure. The caller's context must outlive this thread, which may
  // still be on its way out of post() when the caller has its result.
  template <class Work>
  Task<std::invoke_result_t<Work>> run(Work work, Company company = Company::Shared) {
    using Value = std::invoke_result_t<Work>;
    auto executor = co_await boost::asio::this_coro::executor;
    auto result = std::make_shared<std::optional<Value>>();
    auto finished = std::make_shared<OneShot<bool>>();
    Job job;
    job.company = company;
    job.work = [result, work = std::move(work)]() mutable { result->emplace(work()); };
    job.done = [executor, finished, result](const Result<void>& batch) {
      if (!batch && *result && **result) result->emplace(fail(batch.error()));
      boost::asio::post(executor, [finished] { finished->set(true); });
    };
    submit(std::move(job));
    co_await finished->wait();
    co_return std::move(**result);
  }

 private:
  void submit(Job job);
  std::vector<Job> take_batch();
  void loop();

  Around around_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Job> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace atl::async
