// Makes empty file systems. mke2fs needs the host's files, which the launcher gives up at its
// start; so a child keeps them and formats what it is handed, by descriptor.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::launcher {

class Formatter {
 public:
  // Call before the launcher leaves the host's mount namespace.
  static Result<Formatter> start();
  // Writes an ext4 file system over the whole of `image`. Blocks, for tens of milliseconds.
  Result<void> format(int image);

 private:
  explicit Formatter(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

}  // namespace atl::launcher
