// E2B's protocol: its control API beside ours, and its sandboxes' daemon ("envd") for requests that
// name a sandbox in a header or in their host's name. Everything here is a translation onto the
// manager and the sessions that /v1 uses.
#pragma once

#include <string>
#include <vector>

#include "api/protocol.h"

namespace atl::api::e2b {

std::vector<Protocol> protocols();

// What an E2B client is to have in its environment, one "NAME=value" a line.
std::string client_environment(const std::string& base_url, const std::string& api_key);

}  // namespace atl::api::e2b
