// What the launcher is given once, at its start. After that it takes only fixed messages.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "wire/launcher_messages.h"

namespace atl::launcher {

struct LauncherConfig {
  UniqueFd server;          // SOCK_SEQPACKET to the server
  UniqueFd egress;          // the same to egress, which gets the sockets of gates
  std::string data_dir;     // layers, the pool
  std::string run_dir;      // agent sockets
  std::string cgroup_name;  // of our subtree in every hierarchy
  uid_t server_uid = 0;     // may connect to agents
  gid_t server_gid = 0;
  std::string_view agent;  // the agent's executable
  Limits default_limits;
  uint32_t reserve = 4;        // blank slots kept ready
  uint64_t storage_bytes = 0;  // of the pool's image; 0: half of what is free
  std::string steering;        // what brings connections to gates; see GateKeeper
  std::string criu_dir;        // where criu is unpacked; empty: nowhere
};

// Runs until the server hangs up or asks for shutdown. Never returns.
[[noreturn]] void run_launcher(LauncherConfig config);

}  // namespace atl::launcher
