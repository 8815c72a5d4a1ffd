#include "image/confined_child.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>

#include "base/sanitized.h"
#include "os/file.h"
#include "os/id_map.h"
#include "os/raw_identity.h"

namespace atl::image {
namespace {

constexpr int kChildSocket = 3;
constexpr rlim_t kMemoryBytes = rlim_t{1} << 30;
constexpr std::array kCapabilities = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
                                      CAP_SETFCAP};

// What the child says twice before it runs its body, when it wants its ids mapped and when it is
// confined: Ready, or the step that failed.
enum class Step : uint8_t {
  Ready,
  Streams,
  PrivateMounts,
  AttachTree,
  PivotRoot,
  DetachHost,
  UserNamespace,
  Identity,
  Capabilities,
  Limits,
};

struct StartMessage {
  Step step = Step::Ready;
  int32_t err = 0;
};

const char* describe(Step step) {
  switch (step) {
    case Step::Ready:
      return "starting";
    case Step::Streams:
      return "opening /dev/null";
    case Step::PrivateMounts:
      return "making its mounts private";
    case Step::AttachTree:
      return "mounting the layer";
    case Step::PivotRoot:
      return "pivot_root into the layer (the root of this process must be a mount point)";
    case Step::DetachHost:
      return "unmounting the host";
    case Step::UserNamespace:
      return "creating a user namespace";
    case Step::Identity:
      return "becoming root of its namespace";
    case Step::Capabilities:
      return "dropping capabilities";
    case Step::Limits:
      return "setting limits";
  }
  return "starting";
}

struct Start {
  int tree;
  int socket;
  ConfinedChild::Code code;
};

[[noreturn]] void give_up(int socket, Step step) {
  StartMessage message{step, errno};
  [[maybe_unused]] ssize_t ignored = send(socket, &message, sizeof message, MSG_NOSIGNAL);
  _exit(1);
}

void close_streams(int socket) {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) null = open("/null", O_RDWR | O_CLOEXEC);  // where the launcher has it
  if (null < 0) give_up(socket, Step::Streams);
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (dup2(null, stream) < 0) give_up(socket, Step::Streams);
  }
}

void enter_tree(const Start& start) {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    give_up(start.socket, Step::PrivateMounts);
  }
  if (move_mount(start.tree, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0 ||
      fchdir(start.tree) != 0) {
    give_up(start.socket, Step::AttachTree);
  }
  // pivot_root(2), "pivot_root(".", ".")": the old root ends up on top of the new one.
  if (syscall(SYS_pivot_root, ".", ".") != 0) give_up(start.socket, Step::PivotRoot);
  if (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) give_up(start.socket, Step::DetachHost);
}

// The namespaces of mounts, pids and the network stay the host's property; the user namespace comes
// last, so that even its root has no say over them.
void enter_user_namespace(int socket) {
  if (unshare(CLONE_NEWUSER) != 0) give_up(socket, Step::UserNamespace);
  StartMessage ready;
  char mapped = 0;
  if (send(socket, &ready, sizeof ready, MSG_NOSIGNAL) != sizeof ready ||
      read(socket, &mapped, 1) != 1) {
    _exit(1);
  }
  if (!os::become_namespace_root()) give_up(socket, Step::Identity);
}

void drop_capabilities(int socket) {
  auto is_kept = [](int wanted) {
    for (int kept : kCapabilities) {
      if (kept == wanted) return true;
    }
    return false;
  };
  for (int capability = 0; capability <= CAP_LAST_CAP; capability++) {
    // EINVAL: this kernel is older than the header and has no such capability.
    if (!is_kept(capability) && prctl(PR_CAPBSET_DROP, capability) != 0 && errno != EINVAL) {
      give_up(socket, Step::Capabilities);
    }
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  for (int kept : kCapabilities) {
    data[kept / 32].effective |= 1u << (kept % 32);
    data[kept / 32].permitted |= 1u << (kept % 32);
  }
  if (syscall(SYS_capset, &header, data.data()) != 0 ||
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    give_up(socket, Step::Capabilities);
  }
}

void set_limits(int socket) {
  rlimit memory{kMemoryBytes, kMemoryBytes};
  if (!kSanitized && setrlimit(RLIMIT_AS, &memory) != 0) give_up(socket, Step::Limits);
  rlimit none{0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) give_up(socket, Step::Limits);
  // After the last change of identity, which would clear it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(socket, Step::Limits);
}

[[noreturn]] void run_child(const Start& start) {
  close_streams(start.socket);
  start.code.prepare();
  enter_tree(start);
  enter_user_namespace(start.socket);
  drop_capabilities(start.socket);
  set_limits(start.socket);
  if (start.socket != kChildSocket && dup2(start.socket, kChildSocket) < 0) _exit(1);
  close_range(kChildSocket + 1, ~0u, 0);
  umask(0);
  StartMessage confined;
  if (send(kChildSocket, &confined, sizeof confined, MSG_NOSIGNAL) != sizeof confined) _exit(1);
  start.code.run(kChildSocket, start.code.argument);
  _exit(0);
}

Result<UniqueFd> clone_tree(int root_dir) {
  UniqueFd tree(open_tree(root_dir, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH));
  if (!tree.valid()) return fail_errno("open_tree");
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID;
  if (mount_setattr(tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) {
    return fail_errno("mount_setattr");
  }
  return tree;
}

Result<void> expect_ready(int socket) {
  StartMessage message;
  if (recv(socket, &message, sizeof message, MSG_WAITALL) != sizeof message) {
    return fail(ErrorCode::Internal, "the confined process ended before it was ready");
  }
  if (message.step == Step::Ready) return {};
  return fail(Error::from_errno(message.err, describe(message.step)).context("confined process"));
}

Result<void> complete_start(pid_t pid, int socket) {
  ATOLL_TRY(expect_ready(socket));
  ATOLL_ASSIGN(UniqueFd proc, os::open_dir_at(AT_FDCWD, "/proc"));
  ATOLL_TRY(os::write_id_maps(proc.get(), pid, 0, os::kDiskIdBase));
  char mapped = 1;
  if (send(socket, &mapped, 1, MSG_NOSIGNAL) != 1) return fail_errno("send");
  return expect_ready(socket);
}

}  // namespace

Result<ConfinedChild> ConfinedChild::start(int root_dir, const Code& code) {
  ATOLL_ASSIGN(UniqueFd tree, clone_tree(root_dir));
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return fail_errno("socketpair");
  }
  UniqueFd ours(sockets[0]);
  UniqueFd theirs(sockets[1]);
  clone_args args{};
  args.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  args.exit_signal = SIGCHLD;
  // Without CLONE_VM this is fork(2) into new namespaces.
  long pid = syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return fail_errno("clone3");
  if (pid == 0) run_child(Start{tree.get(), theirs.get(), code});
  ConfinedChild child(static_cast<pid_t>(pid), std::move(ours));
  theirs.reset();
  ATOLL_TRY(complete_start(child.pid_, child.socket()));
  return child;
}

ConfinedChild::ConfinedChild(ConfinedChild&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), socket_(std::move(other.socket_)) {}

ConfinedChild::~ConfinedChild() {
  if (pid_ < 0) return;
  kill();
  [[maybe_unused]] Result<int> ignored = wait();
}

void ConfinedChild::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

Result<int> ConfinedChild::wait() {
  int status = 0;
  pid_t reaped;
  do {
    reaped = waitpid(pid_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  if (reaped < 0) return fail_errno("waitpid");
  pid_ = -1;
  return status;
}

}  // namespace atl::image
