// A file as a block device. The kernel lets go of it when its last user does.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::os {

struct LoopDevice {
  std::string path;
  UniqueFd fd;
};

// The device that already stands for this file, or a new one: two would destroy a file system.
Result<LoopDevice> attach_loop(int image);
// The file has grown.
Result<void> take_new_size(const LoopDevice& device);

}  // namespace atl::os
