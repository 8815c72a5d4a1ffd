#include "launcher/listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace atl::launcher {

Result<UniqueFd> make_listener(const ListenerPlan& plan) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fail_errno("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string name = plan.slot + ".sock";
  name.copy(address.sun_path, sizeof address.sun_path - 1);
  // Bound relative to the directory: the host's paths do not exist in this mount namespace.
  if (fchdir(plan.run_dir) != 0) return fail_errno("fchdir", "the run directory");
  unlink(name.c_str());
  int bound = bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  if (bound != 0) return fail_errno("bind", name);
  if (chown(name.c_str(), plan.uid, plan.gid) != 0) return fail_errno("chown", name);
  if (chmod(name.c_str(), 0600) != 0) return fail_errno("chmod", name);
  if (chdir("/") != 0) return fail_errno("chdir", "/");
  if (listen(fd.get(), 128) != 0) return fail_errno("listen", name);
  return fd;
}

}  // namespace atl::launcher
