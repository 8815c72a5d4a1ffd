// Network policies in request bodies.
#pragma once

#include "http/json.h"
#include "sandbox/record.h"

namespace atl::api {

// A policy in any of the forms that SDKs use: SandboxNetworkPolicy, or {blockOutbound, allowList}.
Result<NetworkPolicy> read_policy(const boost::json::value& value, const std::string& field);
// The fields `network`, `networkPolicy` and `egressPolicy` of a create request: at most one.
// Whether there was one.
Result<bool> read_network(http::JsonObjectReader& reader, sandbox::Spec& spec);

}  // namespace atl::api
