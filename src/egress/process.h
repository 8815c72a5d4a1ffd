// The process through which sandboxes reach the world: an account of its own, no rights, no files.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"

namespace atl::egress {

struct EgressConfig {
  UniqueFd server;    // a stream: policies in, traffic out
  UniqueFd launcher;  // SOCK_SEQPACKET: gates, with their sockets
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t parent = 0;           // whose death ends this process
  std::string dns_upstream;   // ADDRESS:PORT; empty: the host's own
  std::string allow_private;  // subnets that the operator opens, with commas between
  std::string ca_file;        // whom to believe upstream; empty: the system's authorities
};

// Serves until the server or the launcher has gone. Never returns.
[[noreturn]] void run_egress(EgressConfig config);

}  // namespace atl::egress
