// From the bytes of an archive to the files of a layer. Whatever parses those bytes is a
// ConfinedChild; this side only moves and hashes them.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/extract.h"

namespace atl::image {

// Part of a file.
struct Range {
  int fd = -1;
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct UnpackOptions {
  ExtractOptions extract;
  // How long the children may go without taking or giving anything.
  std::chrono::seconds stall_timeout{120};
  // Called with how many bytes of the archive have been taken.
  std::function<void(uint64_t)> progress;
};

struct Unpacked {
  ExtractReport report;
  // Hex digits of the archive's bytes and of what they are when decompressed.
  std::string digest;
  std::string diff_id;
};

// Into `layer`; `nowhere` is an empty directory for the child that decompresses. The caller must be
// root and single-threaded; while this runs it has one thread more.
Result<Unpacked> unpack_archive(const Range& archive, int layer, int nowhere,
                                const UnpackOptions& options);

// Plain copy of the archive into the new file `plain`, TooLarge beyond `max_bytes`.
Result<void> inflate_archive(const Range& archive, int plain, int nowhere, uint64_t max_bytes,
                             const UnpackOptions& options);

// The first plain bytes, up to `size` of them.
Result<std::string> peek_archive(const Range& archive, int nowhere, size_t size,
                                 const UnpackOptions& options);

}  // namespace atl::image
