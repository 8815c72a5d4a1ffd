// Backups while the server runs. The copy of the database is made by the server's own connection:
// a second one could damage it (store/store.h).
#pragma once

#include <string>

#include "atoll/task.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "store/store.h"

namespace atl::serve {

class OnlineBackup {
 public:
  OnlineBackup(store::Store& store, std::string data_dir)
      : store_(store), data_dir_(std::move(data_dir)) {}

  // The archive, read from its beginning: a file without a name, gone with its descriptor.
  // Conflict while another one is being made.
  Task<Result<UniqueFd>> make();

 private:
  store::Store& store_;
  std::string data_dir_;
  bool busy_ = false;
};

}  // namespace atl::serve
