// Domain values as E2B's API shows them.
#pragma once

#include <boost/json/object.hpp>

#include "api/context.h"
#include "atoll/types.h"

namespace atl::api::e2b {

// The newest daemon whose whole behaviour we have: its clients refuse by themselves what came later
// (metadata of files, entries in events).
inline constexpr std::string_view kDaemonVersion = "0.6.1";

// The answer to a create: how to reach it.
boost::json::object created_json(const Context& context, const sandbox::Record& record);
boost::json::object listed_json(const sandbox::Record& record);
boost::json::object detail_json(const Context& context, const sandbox::Record& record);
boost::json::object snapshot_json(const sandbox::Snapshot& snapshot);

boost::json::object entry_json(const FileEntry& entry);
// "-rw-r--r--"
std::string permissions_text(const FileEntry& entry);

}  // namespace atl::api::e2b
