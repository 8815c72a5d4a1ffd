#pragma once

#include <memory>
#include <string>

#include "backup/manifest.h"
#include "base/result.h"

struct archive;

namespace atl::backup {

// Writes a tar.zst: files first, the manifest at the end.
class ArchiveWriter {
 public:
  // `fd` stays the caller's.
  static Result<ArchiveWriter> open(int fd);

  // As much as the file has now: it may be growing. It is in `manifest` afterwards.
  Result<void> add(const std::string& path, int fd, Manifest& manifest);
  // Ends the archive.
  Result<void> finish(const Manifest& manifest);

 private:
  struct Free {
    void operator()(archive* made) const;
  };
  explicit ArchiveWriter(archive* made) : archive_(made) {}
  Result<void> check(int code) const;
  Result<void> begin_entry(const std::string& path, uint64_t bytes, uint32_t mode);
  Result<void> write(const char* bytes, size_t size);

  std::unique_ptr<archive, Free> archive_;
};

}  // namespace atl::backup
