#include "launcher/formatter.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <string>

#include "os/fd_passing.h"
#include "os/id_map.h"
#include "os/parent_death.h"

namespace atl::launcher {
namespace {

constexpr int kDeadlineMs = 30'000;

int run_mke2fs(int image) {
  pid_t pid = fork();
  if (pid == 0) {
    // Lazy tables and journal keep a fresh image at a few hundred kilobytes, whatever its size.
    // The root directory belongs to the on-disk id range, not to the host's root.
    std::string owner = std::to_string(os::kDiskIdBase) + ":" + std::to_string(os::kDiskIdBase);
    std::string options = "lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=" + owner;
    std::string path = "/proc/self/fd/" + std::to_string(image);
    int null = open("/dev/null", O_RDWR);
    for (int fd : {0, 1, 2}) dup2(null, fd);
    fcntl(image, F_SETFD, 0);
    execl("/sbin/mke2fs", "mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E", options.c_str(),
          path.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return 126;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

[[noreturn]] void run_formatter(pid_t parent, int socket) {
  prctl(PR_SET_NAME, "atoll-formatter");
  os::die_with_parent(parent);
  for (;;) {
    auto message = os::receive_with_fds(socket, 16, 1);
    if (!message || message->bytes.empty() || message->fds.size() != 1) _exit(0);
    char code = static_cast<char>(run_mke2fs(message->fds[0].get()));
    if (!os::send_with_fds(socket, std::string(1, code), {})) _exit(0);
  }
}

}  // namespace

Result<Formatter> Formatter::start() {
  ATOLL_ASSIGN(os::SocketPair pair, os::make_socket_pair());
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return fail_errno("fork", "formatter");
  if (pid == 0) {
    int socket = fcntl(pair.theirs.get(), F_DUPFD, 64);
    dup2(socket, 3);
    syscall(SYS_close_range, 4, ~0u, 0);
    run_formatter(parent, 3);
  }
  return Formatter(std::move(pair.ours));
}

Result<void> Formatter::format(int image) {
  ATOLL_TRY(os::send_with_fds(socket_.get(), "format", {image}));
  pollfd wait{socket_.get(), POLLIN, 0};
  if (poll(&wait, 1, kDeadlineMs) != 1) return fail(ErrorCode::Timeout, "mke2fs does not end");
  ATOLL_ASSIGN(auto reply, os::receive_with_fds(socket_.get(), 16, 0));
  int code = reply.bytes.empty() ? -1 : static_cast<unsigned char>(reply.bytes[0]);
  if (code == 0) return {};
  if (code == 127) {
    return fail(ErrorCode::NotSupported, "a disk limit needs mke2fs; install e2fsprogs");
  }
  return fail(ErrorCode::Internal, "mke2fs failed with code " + std::to_string(code));
}

}  // namespace atl::launcher
