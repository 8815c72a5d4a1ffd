// What a sandbox may reach, in E2B's words. Where a client says nothing that is the public network.
#pragma once

#include "http/json.h"
#include "sandbox/record.h"

namespace atl::api::e2b {

// The fields `allow_internet_access` and `network` of a create.
Result<NetworkPolicy> read_network(http::JsonObjectReader& reader);
// The body of an update, which has the same without `network` around it.
Result<NetworkPolicy> read_network_update(http::JsonObjectReader& reader);

}  // namespace atl::api::e2b
