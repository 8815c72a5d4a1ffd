// Started by the launcher as PID 1 of a sandbox that has no root filesystem yet, with the system
// call filter in place. Descriptor 3 listens for the server, descriptor 4 is the sandbox's cgroup
// directory (absent where there is none).
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "agent/agent.h"

int main() {
  // Nobody inside may look into this process, whatever their uid.
  prctl(PR_SET_DUMPABLE, 0);
  umask(022);
  atl::UniqueFd cgroup(fcntl(4, F_GETFD) >= 0 ? 4 : -1);
  fcntl(3, F_SETFD, FD_CLOEXEC);
  fcntl(3, F_SETFL, O_NONBLOCK);
  if (cgroup.valid()) fcntl(4, F_SETFD, FD_CLOEXEC);
  atl::agent::Agent agent(atl::UniqueFd(3), std::move(cgroup));
  agent.run();
}
