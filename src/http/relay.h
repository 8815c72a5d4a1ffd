// One request of a server's client, passed on to another server over a connection of its own, and
// the answer back. Bodies go through as they come, in both directions at once.
#pragma once

#include <functional>
#include <string>

#include "http/head_parser.h"
#include "http/message.h"
#include "http/response_writer.h"
#include "http/tunnel.h"

namespace atl::http {

struct RelayPlan {
  std::string target;    // "/path?query", as the other server is asked for it
  Headers headers;       // all that goes there but framing and what belongs to a connection
  bool upgrade = false;  // the other server may switch to another protocol
  // Changes the answer's fields before they are passed on.
  std::function<void(ResponseHead&)> on_head;
};

struct RelayEnds {
  Request& request;
  ResponseWriter& writer;
  Socket& upstream;  // connected, and used for nothing else
  TunnelMeter& meter;
};

// Fails with nothing answered (writer.started() tells) where the other server gave no answer.
// Returns when nothing refers to the ends any more.
Task<Result<void>> relay(RelayEnds ends, RelayPlan plan);

}  // namespace atl::http
