// Brings archives into the layer store.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "image/layer_store.h"
#include "image/unpack.h"

namespace atl::image {

// What an archive may unpack to, and how long that may go without moving.
struct ImportLimits {
  uint64_t max_bytes = uint64_t{16} << 30;
  uint64_t max_entries = 2'000'000;
  std::chrono::seconds stall_timeout{120};
};

struct LayerSource {
  Range bytes;  // a tar archive: plain, gzip, xz or zstd
  LayerKind kind = LayerKind::Rootfs;
  // What the layer is known by, 64 hex digits: of the archive's bytes for a root filesystem, of the
  // decompressed archive (its "diff id") for one layer of an image.
  std::string digest;
};

struct ImportReport {
  std::string layer_id;
  // "sha256:..." as in LayerSource.
  std::string digest;
  // The layer was there already; the counts below are zero then.
  bool reused = false;
  // It hides every layer below it.
  bool opaque = false;
  // Of the layer's files, also where it was there already; 0 where that was not noted.
  uint64_t layer_bytes = 0;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t skipped_devices = 0;
  uint64_t skipped_attributes = 0;
};

// PermissionDenied, with the remedy, for anybody else.
Result<void> check_root();

std::string layer_id(LayerKind kind, const std::string& digest);

// The layer on top of those of an image: the device nodes and the places that a sandbox mounts
// something onto. A root filesystem has them in its one layer.
inline constexpr const char* kPlacesLayer = "places-2";

using ByteProgress = std::function<void(uint64_t bytes)>;

// Unpacks into the store, unless the layer is there: the same bytes give the same layer. The
// archive is parsed in ConfinedChildren, so the caller must be root and single-threaded. For one
// layer of an image it also sees to kPlacesLayer.
//
// Errors: InvalidArgument for an archive that is damaged, cannot be a root filesystem (the message
// names the entry) or is not the one that the digest names, TooLarge for one beyond the limits,
// NoSpace, PermissionDenied without root, Timeout, Conflict if the file changed while it was read.
Result<ImportReport> import_layer(const LayerStore& store, const LayerSource& source,
                                  const ImportLimits& limits, const ByteProgress& progress = {});

struct ImportOptions {
  std::string archive_path;
  std::string layers_dir;
  ImportLimits limits = {};
};
// The archive of a whole root filesystem.
Result<ImportReport> import_rootfs(const ImportOptions& options);

Result<UniqueFd> open_archive(const std::string& path);
// All of an open file.
Result<Range> whole_file(int fd);
// 64 hex digits.
Result<std::string> digest_of(const Range& range);

}  // namespace atl::image
