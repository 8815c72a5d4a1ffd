#include "launcher/builder.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "os/fd_passing.h"
#include "os/parent_death.h"

namespace atl::launcher {

static constexpr unsigned kBuildSeconds = 20;

[[noreturn]] static void run_builder(pid_t parent, const ShellPlan& plan, os::CgroupTree& cgroups,
                                     int socket) {
  prctl(PR_SET_NAME, "atoll-builder");
  os::die_with_parent(parent);
  alarm(kBuildSeconds);  // a kernel that hangs must not leave builders about
  Result<Shell> shell = build_shell(plan, cgroups);
  if (shell) {
    std::string bytes("K");
    bytes.append(reinterpret_cast<const char*>(&shell->pid), sizeof shell->pid);
    (void)os::send_with_fds(socket, bytes,
                            {shell->pidfd.get(), shell->mount_mapping.get(), shell->files.get()});
  } else {
    (void)os::send_with_fds(socket, "E" + shell.error().message(), {});
  }
  _exit(0);
}

Result<Builder> Builder::start(ShellPlan plan, os::CgroupTree& cgroups) {
  ATOLL_ASSIGN(os::SocketPair pair, os::make_socket_pair());
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return fail_errno("fork", "builder");
  if (pid == 0) {
    pair.ours.reset();
    run_builder(parent, plan, cgroups, pair.theirs.get());
  }
  return Builder(std::move(plan), pid, std::move(pair.ours));
}

Result<Shell> Builder::finish() {
  auto message = os::receive_with_fds(socket_.get(), 1024, 3);
  waitpid(pid_, nullptr, 0);
  if (!message) return fail(std::move(message).error());
  if (message->bytes.empty()) return fail(ErrorCode::Internal, "a slot builder died");
  if (message->bytes[0] != 'K' || message->fds.size() != 3) {
    return fail(ErrorCode::Internal, message->bytes.substr(1));
  }
  Shell shell;
  memcpy(&shell.pid, message->bytes.data() + 1, sizeof shell.pid);
  shell.pidfd = std::move(message->fds[0]);
  shell.mount_mapping = std::move(message->fds[1]);
  shell.files = std::move(message->fds[2]);
  return shell;
}

}  // namespace atl::launcher
