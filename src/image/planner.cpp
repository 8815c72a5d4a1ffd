#include "image/planner.h"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "image/child_report.h"
#include "os/fd_passing.h"
#include "wire/codec.h"

namespace atl::image {
namespace {

constexpr size_t kMaxMessage = 512 << 10;
constexpr rlim_t kMemoryBytes = rlim_t{2} << 30;

// One message either way; the first byte says what it is.
enum Kind : char { kOpen = 'O', kPlan = 'P', kFailure = 'F', kFile = 'K' };

std::string failure_message(const Error& error) {
  std::string bytes(1, kFailure);
  bytes.push_back(static_cast<char>(error.code()));
  return bytes + error.message().substr(0, 8192);
}

Error failure_from(std::string_view bytes) {
  auto code = bytes.size() > 1 ? static_cast<uint8_t>(bytes[1]) : uint8_t{255};
  if (code > static_cast<uint8_t>(ErrorCode::Internal)) {
    return Error(ErrorCode::Internal, "malformed answer");
  }
  return Error(static_cast<ErrorCode>(code), printable_text(bytes.substr(2)));
}

Result<void> give_up_rights(const Planner& planner, pid_t parent) {
  if (geteuid() == 0 && planner.uid != 0) {
    if (setgroups(0, nullptr) != 0) return fail_errno("setgroups");
    if (setresgid(planner.gid, planner.gid, planner.gid) != 0) return fail_errno("setresgid");
    if (setresuid(planner.uid, planner.uid, planner.uid) != 0) return fail_errno("setresuid");
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno("prctl");
  // After the change of user, which would undo it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) return fail_errno("prctl");
  rlimit data{kMemoryBytes, kMemoryBytes};
  if (!kSanitized && setrlimit(RLIMIT_DATA, &data) != 0) return fail_errno("setrlimit");
  return {};
}

Result<UniqueFd> ask_for(int socket, const std::string& name) {
  ATOLL_TRY(os::send_with_fds(socket, std::string(1, kOpen) + name.substr(0, 4096), {}));
  ATOLL_ASSIGN(os::ReceivedMessage answer, os::receive_with_fds(socket, kMaxMessage, 1));
  if (answer.bytes.empty()) return fail(ErrorCode::Cancelled, "nobody answers");
  if (answer.bytes[0] != kFile || answer.fds.size() != 1) return fail(failure_from(answer.bytes));
  return std::move(answer.fds[0]);
}

[[noreturn]] void run_child(const Planner& planner, int socket, pid_t parent) {
  prctl(PR_SET_NAME, "atoll-planner");
  auto plan = [&]() -> Result<ImagePlan> {
    ATOLL_TRY(give_up_rights(planner, parent));
    return planner.work([&](const std::string& name) { return ask_for(socket, name); });
  }();
  std::string bytes =
      plan ? std::string(1, kPlan) + wire::encode(*plan) : failure_message(plan.error());
  (void)os::send_with_fds(socket, bytes, {});
  _exit(0);
}

Result<void> answer(const Planner& planner, int socket, std::string_view name) {
  Result<UniqueFd> file =
      planner.open ? planner.open(std::string(name)) : fail(ErrorCode::NotFound, "no such file");
  if (!file) return os::send_with_fds(socket, failure_message(file.error()), {});
  return os::send_with_fds(socket, std::string(1, kFile), {file->get()});
}

Result<ImagePlan> serve_child(const Planner& planner, int socket) {
  for (;;) {
    ATOLL_ASSIGN(os::ReceivedMessage message, os::receive_with_fds(socket, kMaxMessage, 0));
    std::string_view bytes = message.bytes;
    if (bytes.empty()) {
      return fail(ErrorCode::InvalidArgument,
                  "the process that reads the image died; the image is damaged or hostile");
    }
    if (bytes[0] == kOpen) {
      ATOLL_TRY(answer(planner, socket, bytes.substr(1)));
    } else if (bytes[0] == kPlan) {
      ATOLL_ASSIGN(ImagePlan plan, wire::decode<ImagePlan>(bytes.substr(1)));
      ATOLL_TRY(check_plan(plan));
      return plan;
    } else {
      return fail(failure_from(bytes));
    }
  }
}

}  // namespace

Result<ImagePlan> run_planner(const Planner& planner) {
  ATOLL_ASSIGN(os::SocketPair pair, os::make_socket_pair());
  for (int end : {pair.ours.get(), pair.theirs.get()}) {
    int size = static_cast<int>(kMaxMessage);
    setsockopt(end, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
  }
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return fail_errno("fork", "planner");
  if (pid == 0) {
    pair.ours.reset();
    run_child(planner, pair.theirs.get(), parent);
  }
  pair.theirs.reset();
  Result<ImagePlan> plan = serve_child(planner, pair.ours.get());
  pair.ours.reset();
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return plan;
}

}  // namespace atl::image
