#include "launcher/gate_keeper.h"

#include <fcntl.h>

#include <vector>

#include "base/log.h"
#include "os/fd_passing.h"
#include "os/gate.h"
#include "wire/egress_messages.h"
#include "wire/frame.h"

namespace atl::launcher {

GateKeeper::GateKeeper(UniqueFd egress, std::string_view steering)
    : egress_(std::move(egress)), home_(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) {
  bool any = steering == "auto";
  if ((any || steering == "program") && try_steering(os::Steering::Program)) return;
  if ((any || steering == "redirection") && try_steering(os::Steering::Redirection)) {
    if (any) degraded_ = "connections of sandboxes are redirected, which is slower: " + degraded_;
    return;
  }
  degraded_ = "no network for sandboxes: " + degraded_;
}

bool GateKeeper::try_steering(os::Steering steering) {
  auto spare = os::open_spare_gate(home_.get(), steering);
  if (!spare) {
    degraded_ = spare.error().message();
    return false;
  }
  spare_ = std::move(*spare);
  steering_ = steering;
  return true;
}

Result<UniqueFd> GateKeeper::open(const std::string& slot, int pidfd) {
  if (!egress_.valid()) return fail(ErrorCode::Unavailable, "there is no egress process");
  if (!spare_) return fail(ErrorCode::NotSupported, degraded_ + " (see 'atoll doctor')");
  ATOLL_ASSIGN(os::Gate gate, os::open_gate(pidfd, home_.get(), steering_));
  std::string message;
  wire::append_frame(message, 0, wire::GateOpened{.slot = slot});
  std::vector<int> sockets;
  for (const UniqueFd& socket : gate.sockets) sockets.push_back(socket.get());
  ATOLL_TRY(os::send_with_fds(egress_.get(), message, sockets));
  return std::move(gate.hold);
}

void GateKeeper::close(const std::string& slot) {
  std::string message;
  wire::append_frame(message, 0, wire::GateClosed{.slot = slot});
  auto told = os::send_with_fds(egress_.get(), message, {});
  if (told) return;
  log(LogLevel::Error, "cannot tell egress of an end", {{"error", told.error().message()}});
}

}  // namespace atl::launcher
