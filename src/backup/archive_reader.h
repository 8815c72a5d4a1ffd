#pragma once

#include <string>

#include "backup/manifest.h"
#include "base/result.h"

namespace atl::backup {

inline constexpr int kCheckOnly = -1;

// Reads a backup to its end and holds every file against the manifest. With a directory `into` the
// files are written there, each for its owner alone; what is there after a failure is worthless.
// InvalidArgument for whatever is no backup, or no whole one.
Result<Manifest> read_archive(const std::string& path, int into);

}  // namespace atl::backup
