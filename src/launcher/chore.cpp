#include "launcher/chore.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd_passing.h"
#include "os/parent_death.h"

namespace atl::launcher {
namespace {

constexpr size_t kMaxBytes = 256u << 10;
constexpr char kDone = 'K';
constexpr char kFailed = 'E';

[[noreturn]] void run(const char* name, unsigned seconds, const Chore::Work& work, int socket) {
  prctl(PR_SET_NAME, name);
  alarm(seconds);
  auto outcome = work();
  if (outcome) {
    std::vector<int> fds;
    for (const UniqueFd& fd : outcome->fds) fds.push_back(fd.get());
    (void)os::send_with_fds(socket, kDone + outcome->bytes, fds);
  } else {
    std::string code(1, static_cast<char>(outcome.error().code()));
    (void)os::send_with_fds(socket, kFailed + code + outcome.error().message(), {});
  }
  _exit(0);
}

}  // namespace

Result<Chore> Chore::start(const char* name, unsigned seconds, const Work& work) {
  ATOLL_ASSIGN(os::SocketPair pair, os::make_socket_pair());
  int buffer = 2 * static_cast<int>(kMaxBytes);
  setsockopt(pair.theirs.get(), SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer);
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return fail_errno("fork", name);
  if (pid == 0) {
    os::die_with_parent(parent);
    pair.ours.reset();
    run(name, seconds, work, pair.theirs.get());
  }
  return Chore(pid, std::move(pair.ours));
}

Result<Chore::Outcome> Chore::finish() {
  auto message = os::receive_with_fds(socket_.get(), kMaxBytes, kMaxFds);
  waitpid(pid_, nullptr, 0);
  if (!message) return fail(std::move(message).error());
  const std::string& bytes = message->bytes;
  if (bytes.empty()) return fail(ErrorCode::Internal, "a helper of the launcher died");
  if (bytes[0] == kDone) return Outcome{bytes.substr(1), std::move(message->fds)};
  return fail(static_cast<ErrorCode>(bytes[1]), bytes.substr(2));
}

}  // namespace atl::launcher
