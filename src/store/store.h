// Durable state. What a caller has awaited survives kill -9; writes that pile up share a commit.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "async/worker_thread.h"
#include "atoll/result.h"
#include "atoll/task.h"
#include "store/sqlite.h"

namespace atl::store {

class Store {
 public:
  // Refuses a damaged database and one from a newer version; never overwrites either.
  static Result<std::unique_ptr<Store>> open(const std::string& path);

  // Every sandbox's record, by id. Call before the first write.
  Result<std::map<std::string, std::string>> load_sandboxes();
  Task<Result<void>> put_sandbox(std::string id, std::string record);
  Task<Result<void>> erase_sandbox(std::string id);

 private:
  Store(Database database, Statement put, Statement erase);
  Result<void> in_transaction(const std::function<void()>& jobs);

  // Exactly one connection: SQLite before 3.51.3 can corrupt a WAL that two connections reset.
  Database database_;
  Statement put_;
  Statement erase_;
  std::unique_ptr<async::WorkerThread> worker_;
};

}  // namespace atl::store
