// What a sandbox may reach, in E2B's words. Sandboxes of this server reach nothing outside
// themselves, so only what asks for no more is taken; everything else is refused by name.
#pragma once

#include "http/json.h"

namespace atl::api::e2b {

// The fields `allow_internet_access` and `network` of a create.
Result<void> read_network(http::JsonObjectReader& reader);

}  // namespace atl::api::e2b
