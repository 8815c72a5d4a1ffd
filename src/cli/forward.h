// A port of a sandbox as a port of this host.
#pragma once

#include <cstdint>
#include <string>

#include "atoll/client.h"
#include "cli/command.h"

namespace atl::cli {

struct ForwardRequest {
  std::string sandbox;
  uint16_t local = 0;  // 0: a free one
  uint16_t port = 0;
};

// "[LOCAL:]PORT"; one number is both.
Result<ForwardRequest> parse_forward(const std::string& text);

// Listens on 127.0.0.1 until it is interrupted.
Result<int> forward(const Globals& globals, Client& client, const ForwardRequest& request);

}  // namespace atl::cli
