// Ways out of sandboxes: made on request, their sockets handed to egress. And ways in: sockets in
// their networks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "os/gate.h"
#include "os/inner_socket.h"

namespace atl::launcher {

class GateKeeper {
 public:
  // `steering` is the setting: "program", "redirection", or "auto" for the first that works.
  GateKeeper(UniqueFd egress, std::string_view steering);

  // What comes back keeps the gate open: closed, nothing goes in or out.
  Result<UniqueFd> open(const std::string& slot, int pidfd);
  // The slot has ended: egress lets go of its sockets, which hold the network namespace.
  void close(const std::string& slot);

  // What is worse than it could be, for people; empty when nothing is.
  const std::string& degraded() const { return degraded_; }

  Result<os::InnerSockets> dialable(int pidfd) const {
    return os::open_inner_sockets(pidfd, home_.get());
  }

 private:
  bool try_steering(os::Steering steering);

  UniqueFd egress_;
  UniqueFd home_;                  // our own network namespace
  std::optional<os::Gate> spare_;  // its sockets keep its namespace
  os::Steering steering_ = os::Steering::Program;
  std::string degraded_;
};

}  // namespace atl::launcher
