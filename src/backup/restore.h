#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "backup/manifest.h"
#include "base/result.h"

namespace atl::backup {

enum class Existing : uint8_t { Refuse, MoveAside };

struct RestoreOptions {
  std::string file;
  std::string data_dir;
  uid_t server_uid = 0;
  gid_t server_gid = 0;
  Existing existing = Existing::Refuse;
};

struct Restored {
  Manifest manifest;
  // Where what was there before is now; empty where there was nothing.
  std::string aside;
  // Sandboxes on the disk that the backup does not know; a server would delete their files, so they
  // are in `aside` too.
  std::vector<std::string> unknown_sandboxes;
};

// Puts a backup's files into a data directory, which is made where it is missing. Nothing there
// changes before the whole backup has been read, compared with its manifest and written to the
// disk; then the state comes into its place in one step.
//
// Errors: Conflict where a server runs on the directory, or it has a database that may not be
// moved; InvalidArgument for a damaged backup, NotSupported for one of a newer version.
Result<Restored> restore(const RestoreOptions& options);

}  // namespace atl::backup
