// The programs Atoll is compared with, as far as this host has them. One run is a whole command
// line from its start to its end.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "docker_daemon.h"
#include "report.h"
#include "server_fixture.h"

namespace atl::bench {

struct Peer {
  std::string name;
  std::vector<std::string> argv;
};

// Each has been run once with success; what is missing is noted in the report. Without a daemon
// there is no Docker among them.
std::vector<Peer> find_peers(const Workspace& workspace, const DockerDaemon* docker,
                             Report& report);

// Microseconds of one run.
Result<double> time_peer(const Peer& peer);

}  // namespace atl::bench
