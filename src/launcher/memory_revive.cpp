#include "launcher/memory_revive.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/scope_exit.h"
#include "criu/images.h"
#include "launcher/agent_door.h"
#include "launcher/checks.h"
#include "launcher/listener.h"
#include "launcher/mount_table.h"
#include "launcher/network.h"
#include "launcher/rootfs.h"
#include "os/file.h"
#include "os/id_map.h"
#include "os/remove_tree.h"
#include "os/syscalls.h"
#include "wire/codec.h"

namespace atl::launcher {
namespace {

constexpr const char* kLog = "restore.log";

Result<Manifest> load_manifest(int images, const std::string& image) {
  ATOLL_ASSIGN(UniqueFd dir, os::open_beneath(images, image.c_str(), O_RDONLY | O_DIRECTORY));
  ATOLL_ASSIGN(std::string bytes, os::read_file_at(dir.get(), kManifest));
  return wire::decode<Manifest>(bytes);
}

// Confinement that criu does not know of and that what it restores inherits from it.
void confine_speculation() {
  syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_FORCE_DISABLE, 0, 0);
  prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_INDIRECT_BRANCH, PR_SPEC_FORCE_DISABLE, 0, 0);
}

// By a child that enters the user namespace: these limits are those of whoever writes them.
Result<void> forbid_namespaces(int pidfd) {
  pid_t child = fork();
  if (child < 0) return fail_errno("fork");
  if (child == 0) {
    if (setns(pidfd, CLONE_NEWUSER) != 0) _exit(1);
    for (const char* kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"}) {
      std::string path = std::string("/proc/sys/user/max_") + kind + "_namespaces";
      UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
      char now[4] = {};
      if (!file.valid() || write(file.get(), "0", 1) != 1) _exit(2);
      if (pread(file.get(), now, sizeof now, 0) < 1 || now[0] != '0') _exit(3);
    }
    _exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return fail_errno("wait");
  if (status == 0) return {};
  return fail(ErrorCode::Internal, "namespaces could not be forbidden in the revived sandbox");
}

class Revival {
 public:
  explicit Revival(const RevivePlan& plan) : plan_(plan), own_images_(".revive-" + plan.slot) {}

  Result<Revived> run() {
    ATOLL_ASSIGN(manifest_, load_manifest(plan_.images, plan_.request.image));
    ATOLL_TRY(check_host(manifest_, plan_.agent));
    ATOLL_TRY(copy_images());
    ScopeExit clear([&] { os::remove_tree(plan_.images, own_images_.c_str()); });
    ATOLL_TRY(enter_groups());
    ATOLL_TRY(enter_new_network());
    ATOLL_ASSIGN(listener_, make_listener({.run_dir = plan_.sockets_dir,
                                           .slot = plan_.slot,
                                           .uid = plan_.server_uid,
                                           .gid = plan_.server_gid}));
    ATOLL_TRY(mount_files());
    ATOLL_TRY(restore());
    ATOLL_TRY(resume_agent(plan_.sockets_dir, plan_.slot, revived_.pidfd.get(), {}));
    return std::move(revived_);
  }

 private:
  // The same files under other names, but for those that say who it is.
  Result<void> copy_images() {
    ATOLL_ASSIGN(UniqueFd from, os::open_beneath(plan_.images, plan_.request.image.c_str(),
                                                 O_RDONLY | O_DIRECTORY));
    os::remove_tree(plan_.images, own_images_.c_str());
    // criu opens them as the sandbox's root too; nobody else gets this far.
    if (mkdirat(plan_.images, own_images_.c_str(), 0755) != 0) return fail_errno("mkdir", "images");
    ATOLL_ASSIGN(dir_, os::open_dir_at(plan_.images, own_images_.c_str()));
    ATOLL_ASSIGN(auto names, criu::list_images(from.get()));
    for (const std::string& name : names) {
      if (linkat(from.get(), name.c_str(), dir_.get(), name.c_str(), 0) != 0) {
        return fail_errno("link", name);
      }
    }
    for (const std::string& name : names) {
      if (name.starts_with("userns-")) {
        ATOLL_TRY(criu::rewrite_id_maps(dir_.get(), name, plan_.id_base));
      } else if (name.starts_with("utsns-")) {
        ATOLL_TRY(criu::rewrite_host_name(dir_.get(), name, plan_.request.sandbox.sandbox));
      }
    }
    return {};
  }

  // Limits come when everything is back: criu needs some room beside it.
  Result<void> enter_groups() {
    ATOLL_TRY(plan_.cgroups->create(plan_.slot, plan_.id_base));
    for (const GroupFacts& group : manifest_.groups) {
      ATOLL_TRY(check_id(group.name));
      ATOLL_TRY(plan_.cgroups->make_subgroup(plan_.slot, group.name, plan_.id_base));
    }
    ATOLL_TRY(plan_.cgroups->join_legacy(plan_.slot));
    ATOLL_TRY(plan_.cgroups->join_unified(plan_.slot));
    if (unshare(CLONE_NEWCGROUP) != 0) return fail_errno("unshare", "cgroup namespace");
    ATOLL_ASSIGN(cgroup_, plan_.cgroups->open_unified(plan_.slot));
    return {};
  }

  Result<void> mount_files() {
    ATOLL_ASSIGN(UniqueFd proc, os::open_dir_at(AT_FDCWD, "/proc"));
    ATOLL_ASSIGN(UniqueFd mapping, os::make_mount_mapping(proc.get(), plan_.id_base));
    const wire::BuildRequest& sandbox = plan_.request.sandbox;
    RootfsPlan files{.pool = plan_.pool,
                     .layers_dir = plan_.layers_dir,
                     .layers = sandbox.layers,
                     .sandbox = sandbox.sandbox,
                     .existing = true,
                     .blank = {},
                     .mount_mapping = mapping.get(),
                     .id_base = plan_.id_base,
                     .ephemeral = sandbox.ephemeral,
                     .disk_bytes = sandbox.limits.disk_bytes};
    ATOLL_ASSIGN(UniqueFd root, mount_rootfs(files));
    ATOLL_TRY(plan_.workshop->enter());
    if (os::move_mount(root.get(), "", AT_FDCWD, kNewRoot, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
      return fail_errno("move_mount", "the root filesystem");
    }
    return {};
  }

  Result<void> restore() {
    confine_speculation();
    criu::Request request{.verb = criu::Verb::Restore,
                          .images_dir = dir_.get(),
                          .log_file = kLog,
                          .config_file = kCriuConfig,
                          .external = {},
                          .root = kNewRoot,
                          .inherit = {}};
    ATOLL_ASSIGN(request.external, external_mounts(manifest_.mounts, MountsFor::Restore));
    request.inherit.emplace_back("socket:[" + std::to_string(manifest_.listener) + "]",
                                 listener_.get());
    request.inherit.emplace_back(manifest_.cgroup_key, cgroup_.get());
    auto on_step = [&](const criu::Response& step) -> Result<void> {
      if (step.script != "pre-resume") return {};
      auto fit = before_first_step();
      // criu would let it go on. This ends everything in it.
      if (!fit && revived_.pidfd.valid()) os::pidfd_send_signal(revived_.pidfd.get(), SIGKILL);
      return fit;
    };
    auto response =
        criu::run(plan_.workshop->program(), request, {listener_.get(), cgroup_.get()}, on_step);
    if (!response) return fail(std::move(response).error());
    if (!response->success) {
      return fail(ErrorCode::InvalidState, "its processes could not be brought back: " +
                                               criu::reason_in_log(dir_.get(), kLog));
    }
    if (revived_.pidfd.valid()) return {};
    return fail(ErrorCode::Internal, "criu did not tell of the restored processes");
  }

  // All is restored and nothing runs yet. What fails here is killed before it ever does.
  Result<void> before_first_step() {
    std::vector<pid_t> processes;
    for (pid_t found : plan_.cgroups->processes(plan_.slot)) {
      int32_t inner = inner_pid(found);
      if (inner == 1) revived_.pid = found;
      if (inner != 0) processes.push_back(found);
    }
    if (revived_.pid != 0) revived_.pidfd = os::pidfd_open(revived_.pid);
    if (!revived_.pidfd.valid()) return fail(ErrorCode::Internal, "no agent was revived");
    ATOLL_TRY(
        check_isolation(manifest_, {.pid = revived_.pid, .id_base = plan_.id_base}, processes));
    ATOLL_TRY(forbid_namespaces(revived_.pidfd.get()));
    for (pid_t process : processes) {
      int32_t inner = inner_pid(process);
      for (const GroupFacts& group : manifest_.groups) {
        bool member = std::find(group.processes.begin(), group.processes.end(), inner) !=
                      group.processes.end();
        if (member) ATOLL_TRY(plan_.cgroups->move_process(plan_.slot, group.name, process));
      }
    }
    return plan_.cgroups->set_limits(plan_.slot, cgroup_limits(plan_.request.sandbox.limits));
  }

  const RevivePlan& plan_;
  std::string own_images_;
  UniqueFd dir_;
  Manifest manifest_;
  UniqueFd listener_;
  UniqueFd cgroup_;
  Revived revived_;
};

}  // namespace

Result<Revived> revive(const RevivePlan& plan) { return Revival(plan).run(); }

}  // namespace atl::launcher
