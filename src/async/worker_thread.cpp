#include "async/worker_thread.h"

#include <algorithm>
#include <iterator>

namespace atl::async {

WorkerThread::WorkerThread(Around around)
    : around_(std::move(around)), thread_([this] { loop(); }) {}

WorkerThread::~WorkerThread() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void WorkerThread::submit(Job job) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(job));
  }
  wake_.notify_one();
}

// The first jobs that may go together. The lock is held.
std::vector<WorkerThread::Job> WorkerThread::take_batch() {
  auto alone = [](const Job& job) { return job.company == Company::Alone; };
  auto end = std::find_if(queue_.begin(), queue_.end(), alone);
  if (end == queue_.begin()) ++end;
  std::vector<Job> batch(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
  return batch;
}

void WorkerThread::loop() {
  for (;;) {
    std::vector<Job> batch;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      batch = take_batch();
    }
    auto run_all = [&batch] {
      for (Job& job : batch) job.work();
    };
    Result<void> held;
    if (batch.front().company == Company::Alone)
      run_all();
    else
      held = around_(run_all);
    for (Job& job : batch) job.done(held);
  }
}

}  // namespace atl::async
