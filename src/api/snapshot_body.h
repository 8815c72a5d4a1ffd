// What requests for snapshots and for checkpoints have in common.
#pragma once

#include "api/context.h"
#include "http/json.h"
#include "sandbox/snapshot.h"

namespace atl::api {

// Message, tags and how long it is kept.
Result<sandbox::SnapshotInput> read_snapshot_fields(http::JsonObjectReader& reader);

// A snapshot that has processes.
Result<sandbox::SnapshotPtr> find_checkpoint(Context& context, const std::string& id_or_tag);

// The id of the sandbox, which snapshots outlive, and all memory of it.
Result<std::string> source_of_snapshots(Context& context, const std::string& sandbox);

}  // namespace atl::api
