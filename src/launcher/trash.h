// What deleted sandboxes leave behind is renamed into the trash at once and removed by a process
// that takes its time. A crash loses nothing but that time: the next start finds the trash.
#pragma once

#include <chrono>
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
  // Lets the sweeper finish what there is, for at most this long; the next start does the rest.
  void finish(std::chrono::milliseconds limit);

 private:
  Trash(UniqueFd dir, UniqueFd wake, UniqueFd sweeper)
      : dir_(std::move(dir)), wake_(std::move(wake)), sweeper_(std::move(sweeper)) {}
  UniqueFd dir_;
  UniqueFd wake_;     // a byte: there is something; closed: end when all is done
  UniqueFd sweeper_;  // pidfd
};

}  // namespace atl::launcher
