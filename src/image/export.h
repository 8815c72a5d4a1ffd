// Layers back into an archive.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace atl::image {

struct ExportPlan {
  std::vector<std::string> layers;  // directories, topmost first
  std::string place;                // an empty directory to mount them on
  int file = -1;
};

// Writes the root filesystem that a sandbox of the layers sees as tar compressed with zstd, which
// import takes; returns the bytes of the plain archive. Needs root and a single thread, and moves
// the process into mounts of its own: what the layers hold is read by a ConfinedChild.
Result<uint64_t> export_layers(const ExportPlan& plan);

// The child's body: writes the files below its root as a tar archive to its socket.
void run_packing(int socket, const void* argument);

}  // namespace atl::image
