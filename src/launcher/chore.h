// Work that takes the kernel milliseconds, done by a child so that nobody else waits for it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::launcher {

class Chore {
 public:
  struct Outcome {
    std::string bytes;
    std::vector<UniqueFd> fds;  // at most kMaxFds
  };
  using Work = std::function<Result<Outcome>()>;
  static constexpr size_t kMaxFds = 3;

  // `name` is the child's; after `seconds` it is ended: a kernel that hangs must not leave children
  // about.
  static Result<Chore> start(const char* name, unsigned seconds, const Work& work);

  // Readable once it has ended.
  int fd() const { return socket_.get(); }
  Result<Outcome> finish();

 private:
  Chore(pid_t pid, UniqueFd socket) : pid_(pid), socket_(std::move(socket)) {}
  pid_t pid_;
  UniqueFd socket_;
};

}  // namespace atl::launcher
