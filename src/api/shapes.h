// Domain values as the API shows them.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "api/context.h"
#include "atoll/types.h"
#include "base/iso_time.h"

namespace atl::api {

// Whole numbers without a fraction: "1", not "1E0".
boost::json::value plain_number(double value);
boost::json::object resources_json(const Limits& limits);
boost::json::object sandbox_json(const Context& context, const sandbox::Sandbox& sandbox);
boost::json::object isolation_json(const Context& context);
boost::json::object driver_json(const Context& context);
boost::json::object snapshot_json(const sandbox::Snapshot& snapshot);
boost::json::object process_json(const ProcessInfo& process);
boost::json::object entry_json(const FileEntry& entry);
std::string_view name_of(Stream stream);

// {"success":true,"data":...}
std::string success(boost::json::value data);
inline constexpr std::string_view kSuccess = R"({"success":true})";

}  // namespace atl::api
