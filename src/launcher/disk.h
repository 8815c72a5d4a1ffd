// A file system of its own for a sandbox with a disk limit: a sparse image beside its files, on a
// loop device. The kernel keeps both alive exactly as long as the sandbox's overlay.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "launcher/formatter.h"

namespace atl::launcher {

class DiskImages {
 public:
  // Call before the launcher leaves the host's mount namespace: afterwards there is no /dev.
  static Result<DiskImages> open();

  // The sandbox's file system, mounted but attached nowhere; its image is made on first use.
  Result<UniqueFd> mount(int sandbox_dir, uint64_t bytes);

 private:
  DiskImages(UniqueFd control, Formatter formatter)
      : control_(std::move(control)), formatter_(std::move(formatter)) {}
  Result<UniqueFd> open_image(int sandbox_dir, uint64_t bytes);
  Result<int> attach_loop(int image);

  UniqueFd control_;  // /dev/loop-control; invalid where the host has none
  Formatter formatter_;
};

}  // namespace atl::launcher
