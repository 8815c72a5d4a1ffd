// Backups of what the server knows: its database, keys and audit log. Not the sandboxes' own files,
// nor templates.
#pragma once

#include <string>

#include "backup/manifest.h"
#include "base/result.h"

namespace atl::backup {

// Writes an archive to `out`: `database`, a copy that nobody writes to, and the other files of the
// data directory's state. Blocks.
Result<Manifest> write_backup(const std::string& data_dir, const std::string& database, int out);

// For a data directory without a running server: holds its lock meanwhile.
Result<Manifest> write_offline_backup(const std::string& data_dir, int out);

}  // namespace atl::backup
