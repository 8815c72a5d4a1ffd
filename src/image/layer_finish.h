#pragma once

#include "base/result.h"

namespace atl::image {

// Puts into a freshly unpacked layer what every sandbox needs and no archive is trusted with: the
// device nodes and links of /dev, real directories where the sandbox mounts something, and where to
// ask for names. Whatever the archive had in those places is replaced. Needs root.
Result<void> finish_layer(int layer_dir);

}  // namespace atl::image
