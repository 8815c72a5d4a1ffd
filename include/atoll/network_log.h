// What a sandbox has tried to reach: one entry a connection, lookup or request that mattered.
#pragma once

#include <cstdint>
#include <string>

namespace atl {

struct NetworkEntry {
  uint64_t seq = 0;  // counts from 1 for each sandbox, anew after a restart of the server
  int64_t at_ms = 0;
  bool allowed = false;
  std::string protocol;  // dns, tcp, tls, http; https: TLS that was opened for a rule
  std::string name;      // empty where the client named no host
  std::string address;
  uint16_t port = 0;
  std::string rule;     // what allowed or denied it; empty: nothing allowed it
  std::string reason;   // why it was denied, or ended otherwise than in order
  std::string request;  // "GET /path" of a request that was refused
  uint64_t sent = 0;
  uint64_t received = 0;
  uint32_t duration_ms = 0;
};

}  // namespace atl
