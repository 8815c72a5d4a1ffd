#include "async/worker_thread.h"

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

void WorkerThread::loop() {
  for (;;) {
    std::vector<Job> batch;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      batch.swap(queue_);
    }
    Result<void> held = around_([&batch] {
      for (Job& job : batch) job.work();
    });
    for (Job& job : batch) job.done(held);
  }
}

}  // namespace atl::async
