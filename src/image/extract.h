// Unpacks an archive into the root directory of the calling process. Meant for a ConfinedChild:
// the process root is the new layer and nothing else can be reached, so absolute names and
// symbolic links in the archive have nowhere to lead but into the layer itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::image {

enum class LayerKind : uint8_t {
  Rootfs,  // a whole root filesystem
  Diff,    // one of several, with whiteouts for what it takes away from those below
};

struct ExtractOptions {
  LayerKind kind = LayerKind::Rootfs;
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
  // Directories that hide what lies below them; to mark them takes rights that the child lacks.
  std::vector<std::string> opaque;
  void visit(auto& v) { v(entries, bytes, skipped_devices, skipped_attributes, opaque); }
};

// Prepares libc and libarchive for a life without the host's files. Call it before the process
// root changes.
void prepare_extraction();

// The child's body: unpacks what comes in at its socket and reports. `argument` is ExtractOptions.
void run_extraction(int socket, const void* argument);
Result<ExtractReport> decode_report(std::string_view payload);

// Reads a plain tar archive from `input` to its end.
Result<ExtractReport> extract_archive(int input, const ExtractOptions& options);

}  // namespace atl::image
