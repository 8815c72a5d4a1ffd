#include "launcher/rootfs.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <sched.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/scope_exit.h"
#include "launcher/mount_table.h"
#include "os/file.h"
#include "os/id_map.h"
#include "os/overlay_stage.h"
#include "os/remove_tree.h"
#include "os/syscalls.h"

namespace atl::launcher {
namespace {

enum class Access { ReadOnly, ReadWrite };

Result<void> map_ids(const UniqueFd& tree, int mapping, Access access, const std::string& name) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  if (access == Access::ReadOnly) attributes.attr_set |= MOUNT_ATTR_RDONLY;
  attributes.userns_fd = static_cast<uint64_t>(mapping);
  if (os::mount_setattr(tree.get(), "", AT_EMPTY_PATH, attributes) != 0) {
    return fail_errno("map the ids of", name);
  }
  return {};
}

Result<UniqueFd> mapped_clone(int dir, const std::string& name, int mapping, Access access) {
  ATOLL_ASSIGN(UniqueFd source, os::open_beneath(dir, name.c_str(), O_PATH | O_DIRECTORY));
  UniqueFd tree =
      os::open_tree(source.get(), "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  if (!tree.valid()) return fail_errno("open_tree", name);
  ATOLL_TRY(map_ids(tree, mapping, access, name));
  return tree;
}

Result<void> make_owned_dir(int dir, const char* name) {
  if (mkdirat(dir, name, 0755) != 0) {
    if (errno == EEXIST) return {};
    return fail_errno("mkdir", name);
  }
  if (fchownat(dir, name, os::kDiskIdBase, os::kDiskIdBase, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail_errno("chown", name);
  }
  return {};
}

Result<UniqueFd> existing_tree(const RootfsPlan& plan) {
  // The kernel refuses a work directory that a volatile overlay has been mounted with.
  if (plan.ephemeral) (void)renew_work(plan.pool->sandboxes(), plan.sandbox);
  auto tree =
      mapped_clone(plan.pool->sandboxes(), plan.sandbox, plan.mount_mapping, Access::ReadWrite);
  if (tree || tree.error().sys_errno() != ENOENT) return tree;
  return fail(ErrorCode::NotFound, "the files of " + plan.sandbox + " are missing; delete it");
}

// A new sandbox takes the tree that was made ahead: one rename, and the mount of it stays valid.
Result<UniqueFd> fresh_tree(RootfsPlan& plan) {
  int dir = plan.pool->sandboxes();
  if (syscall(SYS_renameat2, dir, plan.blank.name.c_str(), dir, plan.sandbox.c_str(),
              RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST) return existing_tree(plan);
    return fail_errno("name the files of", plan.sandbox);
  }
  plan.fresh = true;
  return std::move(plan.blank.tree);
}

// The tree that holds `upper` and `work`, mapped.
Result<UniqueFd> writable_tree(RootfsPlan& plan) {
  ATOLL_ASSIGN(UniqueFd tree, plan.existing ? existing_tree(plan) : fresh_tree(plan));
  if (plan.disk_bytes == 0 && plan.fresh) return tree;
  ATOLL_ASSIGN(UniqueFd dir, os::open_dir_at(tree.get(), "."));
  ATOLL_TRY(plan.pool->limit_tree(dir.get(), plan.disk_bytes));
  return tree;
}

// Imported layers are directories of their own, captured ones a kept state's upper directory.
Result<UniqueFd> lower_tree(const RootfsPlan& plan, const std::string& layer) {
  auto imported = mapped_clone(plan.layers_dir, layer, plan.mount_mapping, Access::ReadOnly);
  if (imported || imported.error().sys_errno() != ENOENT) return imported;
  return mapped_clone(plan.pool->states(), layer + "/upper", plan.mount_mapping, Access::ReadOnly);
}

// Overlayfs acts on its layers as whoever mounts it. That must be an id the mapped layers know, or
// the overlay silently comes up read-only; changing the file system id drops the capabilities that
// go with it, so they are raised again.
class MounterIdentity {
 public:
  explicit MounterIdentity(uint32_t id) {
    setfsgid(id);
    setfsuid(id);
    raise_effective();
  }
  ~MounterIdentity() {
    setfsuid(0);
    setfsgid(0);
    raise_effective();
  }

 private:
  static void raise_effective() {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct data[2] = {};
    if (syscall(SYS_capget, &header, data) != 0) return;
    for (auto& half : data) half.effective = half.permitted;
    syscall(SYS_capset, &header, data);
  }
};

Result<void> set_layer(int context, const char* key, int fd) {
  if (os::fsconfig(context, FSCONFIG_SET_FD, key, nullptr, fd) == 0) return {};
  // Kernels before 6.13 take layers by path only; this one leads to the same descriptor.
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (os::fsconfig(context, FSCONFIG_SET_STRING, key, path.c_str(), 0) == 0) return {};
  return fail_errno("overlay option", key);
}

Result<UniqueFd> subdirectory(int tree, const char* name) {
  UniqueFd fd(openat(tree, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("open", name);
  return fd;
}

struct Trees {
  std::vector<int> lower;  // topmost first
  int own;                 // with `upper` and `work`
};

Result<void> set_text(int context, const char* key, const std::string& value) {
  if (os::fsconfig(context, FSCONFIG_SET_STRING, key, value.c_str(), 0) == 0) return {};
  return fail_errno("overlay option", key);
}

Result<UniqueFd> finish(const UniqueFd& context, const RootfsPlan& plan) {
  if (plan.ephemeral &&
      os::fsconfig(context.get(), FSCONFIG_SET_FLAG, "volatile", nullptr, 0) != 0) {
    return fail_errno("overlay option", "volatile");
  }
  MounterIdentity mounter(plan.id_base);
  if (os::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return fail_errno("mount the overlay of", plan.sandbox);
  }
  // Device nodes stand in the template's /dev, so no NODEV: a sandbox cannot make new ones.
  UniqueFd rootfs = os::fsmount(context.get(), MOUNT_ATTR_NOSUID);
  if (!rootfs.valid()) return fail_errno("fsmount", "overlay");
  return rootfs;
}

Result<UniqueFd> mount_detached(const RootfsPlan& plan, const Trees& trees) {
  UniqueFd context = os::fsopen("overlay");
  if (!context.valid()) return fail_errno("fsopen", "overlay");
  for (int lower : trees.lower) ATOLL_TRY(set_layer(context.get(), "lowerdir+", lower));
  ATOLL_ASSIGN(UniqueFd upper, subdirectory(trees.own, "upper"));
  ATOLL_ASSIGN(UniqueFd work, subdirectory(trees.own, "work"));
  ATOLL_TRY(set_layer(context.get(), "upperdir", upper.get()));
  ATOLL_TRY(set_layer(context.get(), "workdir", work.get()));
  return finish(context, plan);
}

// Before 6.15 overlays took layers only from the namespace of whoever mounts them. Ours is copied
// by every sandbox that is being made, so they are mounted in one that nobody else ever sees.
Result<UniqueFd> mount_in_own_namespace(const RootfsPlan& plan, const Trees& trees) {
  static const UniqueFd home(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  if (unshare(CLONE_NEWNS) != 0) return fail_errno("unshare", "mount namespace");
  ScopeExit go_home([] {
    if (setns(home.get(), CLONE_NEWNS) != 0) abort();
  });
  ATOLL_ASSIGN(os::OverlayStage stage, os::OverlayStage::make(kNewRoot));
  for (int lower : trees.lower) ATOLL_TRY(stage.add_lower(lower));
  ATOLL_TRY(stage.place(trees.own, "own"));
  UniqueFd context = os::fsopen("overlay");
  if (!context.valid()) return fail_errno("fsopen", "overlay");
  ATOLL_TRY(set_text(context.get(), "lowerdir", stage.lower()));
  ATOLL_TRY(set_text(context.get(), "upperdir", "own/upper"));
  ATOLL_TRY(set_text(context.get(), "workdir", "own/work"));
  return finish(context, plan);
}

}  // namespace

Result<BlankFiles> make_blank_files(const storage::StatePool& pool, const std::string& slot,
                                    int mount_mapping) {
  BlankFiles blank{.name = "." + slot, .tree = {}};
  ATOLL_TRY(pool.make_tree(pool.sandboxes(), blank.name));
  ATOLL_ASSIGN(UniqueFd dir, os::open_dir_at(pool.sandboxes(), blank.name.c_str()));
  if (fchown(dir.get(), os::kDiskIdBase, os::kDiskIdBase) != 0) {
    return fail_errno("chown", blank.name);
  }
  ATOLL_TRY(make_owned_dir(dir.get(), "upper"));
  ATOLL_TRY(make_owned_dir(dir.get(), "work"));
  ATOLL_ASSIGN(blank.tree,
               mapped_clone(pool.sandboxes(), blank.name, mount_mapping, Access::ReadWrite));
  return blank;
}

Result<void> renew_work(int parent, const std::string& tree) {
  ATOLL_ASSIGN(UniqueFd dir, os::open_dir_at(parent, tree.c_str()));
  os::remove_tree(dir.get(), "work");
  return make_owned_dir(dir.get(), "work");
}

Result<UniqueFd> mount_rootfs(RootfsPlan& plan) {
  ATOLL_ASSIGN(UniqueFd own, writable_tree(plan));
  Trees trees{.lower = {}, .own = own.get()};
  for (const std::string& layer : plan.layers) {
    ATOLL_ASSIGN(UniqueFd lower, lower_tree(plan, layer));
    trees.lower.push_back(lower.get());
    plan.used.push_back(std::move(lower));
  }
  static bool detached_will_do = true;
  Result<UniqueFd> rootfs = fail(ErrorCode::NotSupported, "");
  if (detached_will_do) rootfs = mount_detached(plan, trees);
  if (!rootfs && (!detached_will_do || rootfs.error().sys_errno() == EINVAL)) {
    rootfs = mount_in_own_namespace(plan, trees);
    if (rootfs) detached_will_do = false;
  }
  plan.used.push_back(std::move(own));
  return rootfs;
}

static Error unfit(const char* place, const char* reason) {
  return Error(ErrorCode::InvalidState,
               std::string("its /") + place + " is missing, a link or of the wrong kind (" +
                   reason + "): the template, or what the sandbox has made of it, is damaged");
}

static Result<void> move_into(const char* stage, int root, const char* place, int flags) {
  // The image may have put a link there; only a real directory or file will do.
  auto target = os::open_beneath(root, place, O_PATH | flags);
  if (!target) return fail(unfit(place, strerror(target.error().sys_errno())));
  if (os::move_mount(AT_FDCWD, stage, target->get(), "", MOVE_MOUNT_T_EMPTY_PATH) != 0) {
    return fail(unfit(place, strerror(errno)));
  }
  return {};
}

static Result<void> assemble(const UniqueFd& rootfs, const std::string& hostname) {
  if (os::move_mount(rootfs.get(), "", AT_FDCWD, kNewRoot, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return fail_errno("move_mount", "the root filesystem");
  }
  UniqueFd root(open(kNewRoot, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return fail_errno("open", kNewRoot);
  ATOLL_TRY(move_into(kStageProc, root.get(), "proc", O_DIRECTORY));
  ATOLL_TRY(move_into(kStagePts, root.get(), "dev/pts", O_DIRECTORY));
  ATOLL_TRY(move_into(kStageShm, root.get(), "dev/shm", O_DIRECTORY));
  ATOLL_TRY(move_into(kStageAgent, root.get(), ".atoll/agent", 0));
  if (fchdir(root.get()) != 0) return fail_errno("fchdir", kNewRoot);
  if (os::pivot_root(".", ".") != 0) return fail_errno("pivot_root");
  if (umount2(".", MNT_DETACH) != 0) return fail_errno("umount", "the staging root");
  if (sethostname(hostname.data(), hostname.size()) != 0) return fail_errno("sethostname");
  return {};
}

Result<void> attach_rootfs(int pidfd, const UniqueFd& rootfs, const std::string& hostname) {
  constexpr int kVisited = CLONE_NEWNS | CLONE_NEWUTS;
  // A pidfd of our own would follow us into the other namespaces: keep the ones we came from.
  static const UniqueFd home_mounts(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  static const UniqueFd home_uts(open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC));
  if (setns(pidfd, kVisited) != 0) return fail_errno("setns", "the sandbox's mounts");
  Result<void> assembled = assemble(rootfs, hostname);
  // Failing to come home would leave a privileged process in a sandbox's namespaces.
  if (setns(home_mounts.get(), CLONE_NEWNS) != 0 || setns(home_uts.get(), CLONE_NEWUTS) != 0)
    abort();
  return assembled;
}

}  // namespace atl::launcher
