// What deleted sandboxes leave behind is renamed into the trash at once and removed by a process
// that takes its time. A crash loses nothing but that time: the next start finds the trash.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::launcher {

class Trash {
 public:
  // Starts the sweeper. `dir` is the trash directory.
  static Result<Trash> open(UniqueFd dir);

  // Moves `name` out of `parent`; fine if it is not there.
  Result<void> take(int parent, const std::string& name);

 private:
  Trash(UniqueFd dir, UniqueFd wake) : dir_(std::move(dir)), wake_(std::move(wake)) {}
  UniqueFd dir_;
  UniqueFd wake_;
};

}  // namespace atl::launcher
