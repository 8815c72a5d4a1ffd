// Ways out of sandboxes: made on request, their sockets handed to egress. And ways in: sockets in
// their networks.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "os/inner_socket.h"

namespace atl::launcher {

class GateKeeper {
 public:
  explicit GateKeeper(UniqueFd egress);

  // What comes back keeps the gate open: closed, nothing goes in or out.
  Result<UniqueFd> open(const std::string& slot, int pidfd);
  // The slot has ended: egress lets go of its sockets, which hold the network namespace.
  void close(const std::string& slot);

  Result<os::InnerSockets> dialable(int pidfd) const {
    return os::open_inner_sockets(pidfd, home_.get());
  }

 private:
  UniqueFd egress_;
  UniqueFd home_;  // our own network namespace
};

}  // namespace atl::launcher
