#include "launcher/gate_keeper.h"

#include <fcntl.h>

#include <vector>

#include "base/log.h"
#include "os/fd_passing.h"
#include "os/gate.h"
#include "wire/egress_messages.h"
#include "wire/frame.h"

namespace atl::launcher {

GateKeeper::GateKeeper(UniqueFd egress)
    : egress_(std::move(egress)), home_(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) {}

Result<UniqueFd> GateKeeper::open(const std::string& slot, int pidfd) {
  if (!egress_.valid()) return fail(ErrorCode::Unavailable, "there is no egress process");
  ATOLL_ASSIGN(os::Gate gate, os::open_gate(pidfd, home_.get()));
  std::string message;
  wire::append_frame(message, 0, wire::GateOpened{.slot = slot});
  std::vector<int> sockets;
  for (const UniqueFd& socket : gate.sockets) sockets.push_back(socket.get());
  ATOLL_TRY(os::send_with_fds(egress_.get(), message, sockets));
  return std::move(gate.link);
}

void GateKeeper::close(const std::string& slot) {
  std::string message;
  wire::append_frame(message, 0, wire::GateClosed{.slot = slot});
  auto told = os::send_with_fds(egress_.get(), message, {});
  if (told) return;
  log(LogLevel::Error, "cannot tell egress of an end", {{"error", told.error().message()}});
}

}  // namespace atl::launcher
