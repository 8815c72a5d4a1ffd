// A template back into an archive.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "image/template.h"

namespace atl::image {

struct ExportReport {
  uint64_t entries = 0;
  uint64_t bytes = 0;  // of the plain archive
};

// Writes the root filesystem that a sandbox of the template starts with to the new file `path`, as
// tar compressed with zstd, which import takes. A failure leaves no file. Needs root and a single
// thread, and moves the process into mounts of its own: what the layers hold is read by a
// ConfinedChild.
Result<ExportReport> export_template(const std::string& data_dir, const Template& manifest,
                                     const std::string& path);

// The child's body: writes the files below its root as a tar archive to its socket.
void run_packing(int socket, const void* argument);

}  // namespace atl::image
