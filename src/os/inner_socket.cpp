#include "os/inner_socket.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>

namespace atl::os {

Result<InnerSockets> open_inner_sockets(int pidfd, int home) {
  if (setns(pidfd, CLONE_NEWNET) != 0) return fail_errno("setns", "the sandbox's network");
  constexpr int kType = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  InnerSockets sockets{UniqueFd(socket(AF_INET, kType, 0)), UniqueFd(socket(AF_INET6, kType, 0))};
  int failed = sockets[0].valid() && sockets[1].valid() ? 0 : errno;
  // Failing to come home would leave a privileged process in a sandbox's namespace.
  if (setns(home, CLONE_NEWNET) != 0) abort();
  if (failed != 0) return fail(Error::from_errno(failed, "socket", "in the sandbox's network"));
  return sockets;
}

}  // namespace atl::os
