// The verbs of `atoll snapshot` that have files of their own, or are those of checkpoints, too.
#pragma once

#include <string>
#include <string_view>

#include "atoll/client.h"
#include "cli/command.h"

namespace atl::cli {

// `rm` of snapshots, or of checkpoints: what they are called, and what removes one.
Command remove_kept_command(const std::string& kind, const std::string& argument,
                            const std::string& example,
                            Result<void> (Client::*remove)(std::string_view));
Command prune_snapshots_command();
Command export_snapshot_command();
Command import_snapshot_command();

}  // namespace atl::cli
