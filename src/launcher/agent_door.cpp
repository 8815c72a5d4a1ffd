#include "launcher/agent_door.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "os/fd_passing.h"
#include "os/file.h"
#include "os/syscalls.h"
#include "wire/agent_messages.h"
#include "wire/frame.h"

namespace atl::launcher {
namespace {

constexpr int kAnswerMs = 10'000;
constexpr int64_t kPatienceUs = 3'000'000;
constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 10'000'000};

Result<UniqueFd> connect_to(int sockets_dir, const std::string& slot) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail_errno("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string name = slot + ".sock";
  name.copy(address.sun_path, sizeof address.sun_path - 1);
  if (fchdir(sockets_dir) != 0) return fail_errno("fchdir", "the run directory");
  int connected = ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  int error = errno;
  if (chdir("/") != 0) return fail_errno("chdir", "/");
  if (connected != 0) return fail(Error::from_errno(error, "connect", "to the sandbox's agent"));
  return fd;
}

Result<os::ReceivedMessage> receive(int fd) {
  pollfd readable{fd, POLLIN, 0};
  if (poll(&readable, 1, kAnswerMs) != 1) {
    return fail(ErrorCode::Timeout, "the sandbox's agent does not answer");
  }
  return os::receive_with_fds(fd, 4096, wire::kMaxSuspended);
}

Result<std::vector<UniqueFd>> ask_once(int sockets_dir, const std::string& slot) {
  ATOLL_ASSIGN(UniqueFd door, connect_to(sockets_dir, slot));
  std::string request;
  wire::append_frame(request, 0, wire::Suspend{});
  ATOLL_TRY(os::write_all(door.get(), request));
  ATOLL_ASSIGN(os::ReceivedMessage reply, receive(door.get()));
  if (reply.bytes.size() < wire::kHeaderBytes) {
    return fail(ErrorCode::Unavailable, "the sandbox's agent hung up");
  }
  wire::FrameHeader header = wire::parse_header(reply.bytes.data());
  std::string_view payload = std::string_view(reply.bytes).substr(wire::kHeaderBytes);
  if (header.type == static_cast<uint16_t>(wire::AgentType::Failure)) {
    ATOLL_ASSIGN(auto failure, wire::decode<wire::Failure>(payload));
    return fail(static_cast<ErrorCode>(failure.code), failure.message);
  }
  // Its end of this connection must be closed too.
  ATOLL_ASSIGN(os::ReceivedMessage end, receive(door.get()));
  if (!end.bytes.empty()) return fail(ErrorCode::Internal, "the agent said too much");
  return std::move(reply.fds);
}

}  // namespace

Result<std::vector<UniqueFd>> suspend_agent(int sockets_dir, const std::string& slot) {
  int64_t end = os::monotonic_us() + kPatienceUs;
  for (;;) {
    auto sockets = ask_once(sockets_dir, slot);
    bool passing = !sockets && sockets.error().code() == ErrorCode::Unavailable;
    if (!passing) return sockets;
    if (os::monotonic_us() > end) {
      return fail(std::move(sockets).error().with_code(ErrorCode::InvalidState));
    }
    nanosleep(&kPause, nullptr);
  }
}

Result<void> resume_agent(int sockets_dir, const std::string& slot, int pidfd,
                          const std::vector<UniqueFd>& sockets) {
  ATOLL_ASSIGN(UniqueFd door, connect_to(sockets_dir, slot));
  std::string word;
  wire::append_frame(word, 0, wire::Resume{.connections = static_cast<uint32_t>(sockets.size())});
  std::vector<int> fds;
  for (const UniqueFd& socket : sockets) fds.push_back(socket.get());
  ATOLL_TRY(os::send_with_fds(door.get(), word, fds));
  if (os::pidfd_send_signal(pidfd, wire::kWakeSignal) != 0) return fail_errno("wake", "the agent");
  ATOLL_TRY(receive(door.get()));
  return {};
}

}  // namespace atl::launcher
