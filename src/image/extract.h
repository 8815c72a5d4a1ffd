// Unpacks an archive into the root directory of the calling process. Meant for a ConfinedChild:
// the process root is the new layer and nothing else can be reached, so absolute names and
// symbolic links in the archive have nowhere to lead but into the layer itself.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace atl::image {

struct ExtractLimits {
  uint64_t max_bytes = 0;
  uint64_t max_entries = 0;
};

struct ExtractReport {
  uint64_t entries = 0;
  uint64_t bytes = 0;
  // Device nodes and sockets, which are never taken from an archive.
  uint64_t skipped_devices = 0;
  // Extended attributes outside user.* and security.capability, or that the filesystem refused.
  uint64_t skipped_attributes = 0;
};

// Prepares libc and libarchive for a life without the host's files. Call it before the process
// root changes.
void prepare_extraction();

// Reads a tar archive (plain, gzip, xz or zstd) from `input` to its end.
Result<ExtractReport> extract_archive(int input, const ExtractLimits& limits);

}  // namespace atl::image
