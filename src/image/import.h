// Brings a root filesystem into the layer store.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace atl::image {

struct ImportOptions {
  // A tar archive: plain, gzip, xz or zstd.
  std::string archive_path;
  // Holds one directory per layer; created where missing.
  std::string layers_dir;
  // What an archive may unpack to.
  uint64_t max_bytes = uint64_t{16} << 30;
  uint64_t max_entries = 2'000'000;
  // How long unpacking may go without taking input or finishing.
  std::chrono::seconds stall_timeout{120};
};

struct ImportReport {
  std::string layer_id;
  // "sha256:..." of the archive's bytes.
  std::string digest;
  // The layer was there already; the counts below are zero then.
  bool reused = false;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t skipped_devices = 0;
  uint64_t skipped_attributes = 0;
};

// Unpacks the archive into layers_dir/<layer_id>, which appears whole and durable or not at all.
// The same bytes give the same layer, which is then reused. The archive is parsed in a
// ConfinedChild, so the caller must be root and single-threaded. Imports into one directory take
// turns, across processes; each first removes what a crashed one left behind.
//
// Errors: InvalidArgument for an archive that is damaged or cannot be a root filesystem (the
// message names the entry), TooLarge for one beyond the limits, NoSpace, PermissionDenied without
// root, Timeout, Conflict if the file changed while it was read.
Result<ImportReport> import_rootfs(const ImportOptions& options);

}  // namespace atl::image
