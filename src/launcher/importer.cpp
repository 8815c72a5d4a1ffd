#include "launcher/importer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <chrono>
#include <mutex>
#include <utility>

#include "image/template_import.h"
#include "launcher/mount_table.h"
#include "os/fd_passing.h"
#include "os/parent_death.h"
#include "wire/codec.h"
#include "wire/frame.h"

namespace atl::launcher {
namespace {

constexpr size_t kMaxFrame = 256u << 10;
constexpr auto kProgressEvery = std::chrono::milliseconds(200);

template <class Message>
void send_frame(int socket, uint32_t id, const Message& message) {
  std::string bytes;
  wire::append_frame(bytes, id, message);
  (void)os::send_with_fds(socket, bytes, {});
}

wire::Imported message_of(const image::TemplateImport& made) {
  wire::Imported message;
  message.layers = made.manifest.layers;
  message.digest = made.manifest.digest;
  message.template_bytes = made.manifest.bytes;
  message.entries = made.entries;
  message.bytes = made.bytes;
  message.reused_layers = static_cast<uint32_t>(made.reused_layers);
  const image::TemplateDefaults& defaults = made.manifest.defaults;
  for (const auto& [name, value] : defaults.env) message.env.push_back(name + "=" + value);
  message.workdir = defaults.workdir;
  message.user = defaults.user;
  message.entrypoint = defaults.entrypoint;
  message.cmd = defaults.cmd;
  return message;
}

Result<image::TemplateImport> import(
    const wire::ImportRequest& request, ImporterAccount account,
    const std::function<void(const image::ImportProgress&)>& tell) {
  image::StagedImportOptions options;
  options.data_dir = kDataDir;
  options.staging = request.staging;
  options.uid = account.uid;
  options.gid = account.gid;
  options.progress = tell;
  if (!request.plan.empty()) {
    ATOLL_ASSIGN(options.plan, wire::decode<image::ImagePlan>(request.plan));
  }
  return image::import_staged(options);
}

[[noreturn]] void run_importer(uint32_t id, const wire::ImportRequest& request,
                               ImporterAccount account, int socket) {
  auto next = std::chrono::steady_clock::now();
  auto tell = [&](const image::ImportProgress& now) {
    if (now.bytes < now.total && std::chrono::steady_clock::now() < next) return;
    next = std::chrono::steady_clock::now() + kProgressEvery;
    send_frame(socket, id,
               wire::ImportProgress{.staging = request.staging,
                                    .layer = static_cast<uint32_t>(now.layer),
                                    .layers = static_cast<uint32_t>(now.layers),
                                    .bytes = now.bytes,
                                    .total = now.total});
  };
  Result<image::TemplateImport> made = import(request, account, tell);
  if (made) {
    send_frame(socket, id, message_of(*made));
  } else {
    send_frame(socket, id,
               wire::LauncherFailure{.code = static_cast<uint8_t>(made.error().code()),
                                     .message = made.error().message()});
  }
  _exit(0);
}

}  // namespace

Result<Importer> Importer::start(uint32_t request_id, wire::ImportRequest request,
                                 ImporterAccount account) {
  ATOLL_ASSIGN(os::SocketPair pair, os::make_socket_pair());
  for (int end : {pair.ours.get(), pair.theirs.get()}) {
    int size = static_cast<int>(kMaxFrame);
    setsockopt(end, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
  }
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return fail_errno("fork", "importer");
  if (pid == 0) {
    prctl(PR_SET_NAME, "atoll-importer");
    os::die_with_parent(parent);
    // The server's socket must close when the launcher dies, whatever the importer is doing.
    int socket = fcntl(pair.theirs.get(), F_DUPFD, 64);
    dup2(socket, 3);
    syscall(SYS_close_range, 4, ~0u, 0);
    run_importer(request_id, request, account, 3);
  }
  return Importer(request_id, pid, std::move(pair.ours));
}

Importer::Importer(Importer&& other) noexcept
    : request_id_(other.request_id_),
      pid_(std::exchange(other.pid_, -1)),
      socket_(std::move(other.socket_)) {}

Importer::~Importer() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<std::string> Importer::next_frame() {
  ATOLL_ASSIGN(os::ReceivedMessage message, os::receive_with_fds(socket_.get(), kMaxFrame, 0));
  return std::move(message.bytes);
}

}  // namespace atl::launcher
