#include "launcher/memory_dump.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope_exit.h"
#include "criu/images.h"
#include "launcher/agent_door.h"
#include "launcher/mount_table.h"
#include "os/file.h"
#include "os/remove_tree.h"
#include "wire/codec.h"

namespace atl::launcher {
namespace {

constexpr const char* kLog = "dump.log";
constexpr int kListener = 3;  // the agent's descriptors, as it was started with
constexpr int kCgroup = 4;
constexpr uint32_t kDumpSeconds = 120;

std::string proc_path(pid_t pid, const std::string& name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

Result<struct stat> stat_descriptor(pid_t pid, int fd) {
  struct stat info {};
  std::string path = proc_path(pid, "fd/" + std::to_string(fd));
  if (stat(path.c_str(), &info) != 0) return fail_errno("stat", path);
  return info;
}

// criu names a file that is not part of the image by its mount and inode.
Result<std::string> key_of_cgroup(pid_t pid) {
  ATOLL_ASSIGN(struct stat info, stat_descriptor(pid, kCgroup));
  ATOLL_ASSIGN(std::string text, os::read_file_at(AT_FDCWD, proc_path(pid, "fdinfo/4").c_str()));
  size_t at = text.find("mnt_id:");
  if (at == text.npos) return fail(ErrorCode::Internal, "no mount of the agent's control group");
  int mount = atoi(text.c_str() + at + 7);
  char key[64];
  snprintf(key, sizeof key, "file[%x:%lx]", static_cast<unsigned>(mount),
           static_cast<unsigned long>(info.st_ino));
  return std::string(key);
}

class Dump {
 public:
  explicit Dump(const DumpPlan& plan) : plan_(plan), unfinished_("." + plan.request.image) {}

  Result<wire::Kept> run() {
    int64_t begin = os::monotonic_us();
    ATOLL_TRY(make_directory());
    ScopeExit clear([&] { discard(); });
    ATOLL_TRY(describe());
    ATOLL_ASSIGN(sockets_, suspend_agent(plan_.sockets_dir, plan_.request.slot));
    auto dumped = freeze_and_write();
    if (!dumped && plan_.request.end) (void)plan_.cgroups->freeze(plan_.request.slot, false);
    if (!dumped || !plan_.request.end) {
      auto resumed = resume_agent(plan_.sockets_dir, plan_.request.slot, plan_.pidfd, sockets_);
      if (dumped && !resumed) return fail(std::move(resumed).error());
    }
    if (!dumped) return fail(std::move(dumped).error());
    wire::Kept kept;
    ATOLL_ASSIGN(kept.frozen_us, criu::frozen_us(dir_.get()));
    ATOLL_TRY(finish());
    kept.total_us = static_cast<uint32_t>(os::monotonic_us() - begin);
    kept.bytes = manifest_.bytes;
    clear.dismiss();
    return kept;
  }

 private:
  Result<void> make_directory() {
    if (mkdirat(plan_.images, unfinished_.c_str(), 0700) != 0) {
      return fail_errno("mkdir", "an image of memory");
    }
    ATOLL_ASSIGN(dir_, os::open_dir_at(plan_.images, unfinished_.c_str()));
    return {};
  }

  void discard() {
    os::remove_tree(plan_.images, unfinished_.c_str());
    if (!has_state_) return;
    // What is write-protected cannot be moved to the trash.
    (void)plan_.pool->release_state(plan_.request.state);
  }

  Result<void> describe() {
    manifest_.kernel = kernel_release();
    manifest_.cpu = cpu_features();
    manifest_.agent = plan_.agent;
    manifest_.sandbox = plan_.request.sandbox;
    manifest_.id_base = plan_.id_base;
    ATOLL_ASSIGN(struct stat listener, stat_descriptor(plan_.pid, kListener));
    manifest_.listener = listener.st_ino;
    ATOLL_ASSIGN(manifest_.cgroup_key, key_of_cgroup(plan_.pid));
    ATOLL_ASSIGN(manifest_.mounts, read_mounts(plan_.pid));
    return {};
  }

  // All of its processes stand still and have been written.
  Result<void> at_rest() {
    // What ends must not run on when criu lets go of it: its files would be ahead of its memory.
    if (plan_.request.end) ATOLL_TRY(plan_.cgroups->freeze(plan_.request.slot, true));
    ATOLL_ASSIGN(manifest_.tasks,
                 read_tasks(all_processes(*plan_.cgroups, plan_.request.slot), plan_.id_base));
    for (const auto& group : plan_.cgroups->subgroups(plan_.request.slot)) {
      GroupFacts facts{.name = group.name, .processes = {}};
      for (pid_t pid : group.processes) facts.processes.push_back(inner_pid(pid));
      manifest_.groups.push_back(std::move(facts));
    }
    if (plan_.request.state.empty()) return {};
    ATOLL_TRY(
        plan_.pool->keep_tree(plan_.pool->sandboxes(), plan_.request.sandbox, plan_.request.state));
    has_state_ = true;
    return {};
  }

  Result<void> freeze_and_write() {
    UniqueFd network(open(proc_path(plan_.pid, "ns/net").c_str(), O_RDONLY | O_CLOEXEC));
    if (!network.valid()) return fail_errno("open", "the sandbox's network");
    // Its sockets are to be found where criu itself is.
    if (setns(network.get(), CLONE_NEWNET) != 0) return fail_errno("setns", "network");
    ATOLL_TRY(plan_.workshop->enter());
    criu::Request request{.verb = criu::Verb::Dump,
                          .images_dir = dir_.get(),
                          .log_file = kLog,
                          .config_file = kCriuConfig,
                          .external = {},
                          .pid = plan_.pid,
                          .leave_running = true,
                          .timeout_s = kDumpSeconds,
                          .root = {},
                          .inherit = {}};
    ATOLL_ASSIGN(request.external, external_mounts(manifest_.mounts, MountsFor::Dump));
    request.external.push_back(manifest_.cgroup_key);
    auto on_step = [&](const criu::Response& step) -> Result<void> {
      return step.script == "post-dump" ? at_rest() : Result<void>();
    };
    ATOLL_ASSIGN(criu::Response response,
                 criu::run(plan_.workshop->program(), request, {}, on_step));
    if (response.success) return {};
    return fail(ErrorCode::InvalidState,
                "its processes cannot be kept: " + criu::reason_in_log(dir_.get(), kLog) +
                    "; they go on running");
  }

  Result<void> finish() {
    ATOLL_ASSIGN(auto names, criu::list_images(dir_.get()));
    for (const std::string& name : names) {
      UniqueFd file(openat(dir_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
      struct stat info {};
      if (!file.valid() || fstat(file.get(), &info) != 0) return fail_errno("open", name);
      manifest_.bytes += static_cast<uint64_t>(info.st_size);
      if (plan_.request.durable && fsync(file.get()) != 0) return fail_errno("fsync", name);
    }
    UniqueFd file(openat(dir_.get(), kManifest, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.valid()) return fail_errno("create", kManifest);
    ATOLL_TRY(os::write_all(file.get(), wire::encode(manifest_)));
    if (plan_.request.durable && (fsync(file.get()) != 0 || fsync(dir_.get()) != 0)) {
      return fail_errno("fsync", kManifest);
    }
    if (renameat(plan_.images, unfinished_.c_str(), plan_.images, plan_.request.image.c_str()) !=
        0) {
      return fail_errno("name", plan_.request.image);
    }
    if (plan_.request.durable && fsync(plan_.images) != 0) return fail_errno("fsync", "images");
    // The sandbox's own files must be of the same moment, also after a crash of the host.
    if (plan_.request.durable && syncfs(plan_.pool->sandboxes()) != 0) return fail_errno("syncfs");
    return {};
  }

  const DumpPlan& plan_;
  std::string unfinished_;
  UniqueFd dir_;
  Manifest manifest_;
  std::vector<UniqueFd> sockets_;
  bool has_state_ = false;
};

}  // namespace

Result<std::vector<std::string>> external_mounts(const std::vector<MountFacts>& mounts,
                                                 MountsFor purpose) {
  std::vector<std::string> external;
  for (const MountFacts& mount : mounts) {
    bool own = (mount.place == "/" && mount.type == "overlay") ||
               (mount.type == "proc" && (mount.place == "/proc" || mount.place == "/proc/sys")) ||
               (mount.place == "/dev/pts" && mount.type == "devpts") ||
               (mount.place == "/dev/shm" && mount.type == "tmpfs" && mount.root == "/");
    if (own) continue;
    bool mask = mount.place.starts_with("/proc/") && mount.type == "tmpfs" &&
                (mount.root == kEmptyDir || mount.root == kNull);
    bool agent = mount.place == "/.atoll/agent" && mount.type == "tmpfs";
    if (!mask && !agent) {
      return fail(ErrorCode::InvalidState, "the sandbox has an unknown mount at " + mount.place);
    }
    std::string key = "m" + std::to_string(external.size());
    std::string path = agent ? kReadableAgent : mount.root;
    external.push_back(purpose == MountsFor::Dump ? "mnt[" + mount.place + "]:" + key
                                                  : "mnt[" + key + "]:" + path);
  }
  return external;
}

Result<wire::Kept> dump_memory(const DumpPlan& plan) { return Dump(plan).run(); }

}  // namespace atl::launcher
