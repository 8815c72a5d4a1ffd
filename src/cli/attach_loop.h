// Connects a process in a sandbox with this program's standard streams.
#pragma once

#include <string>

#include "atoll/client.h"
#include "cli/signals.h"

namespace atl::cli {

struct AttachSettings {
  std::string sandbox;
  ProcessInfo process;
  bool input = false;     // forward standard input
  bool terminal = false;  // the process has a terminal: signals are keys there
};

struct AttachEnd {
  enum class Kind {
    Exited,
    Detached,  // asked to stop watching; the process may still be running
    NoReader,  // our standard output is closed
  };
  Kind kind = Kind::Exited;
  int exit_code = 0;
};

// Bytes pass as they are, as soon as they come. Without a terminal a first SIGINT, SIGTERM, SIGHUP
// or SIGQUIT goes to the process and a second one detaches. A connection that breaks is made again,
// where output and input left off.
Result<AttachEnd> attach_streams(Client& client, SignalWatch& signals,
                                 const AttachSettings& settings);

}  // namespace atl::cli
