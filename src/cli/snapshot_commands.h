// The verbs of `atoll snapshot` that have files of their own.
#pragma once

#include "cli/command.h"

namespace atl::cli {

Command prune_snapshots_command();
Command export_snapshot_command();
Command import_snapshot_command();

}  // namespace atl::cli
