#include "storage/state_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>

#include "os/btrfs.h"
#include "os/file.h"
#include "os/loop_device.h"
#include "os/syscalls.h"

namespace atl::storage {
namespace {

constexpr uint64_t kLeastBytes = uint64_t{1} << 30;
constexpr const char* kImage = "pool.img";
constexpr const char* kUnfinished = "pool.new";
constexpr const char* kDirectory = "pool";

Result<void> run_mkfs(int image) {
  pid_t pid = fork();
  if (pid < 0) return fail_errno("fork", "mkfs.btrfs");
  if (pid == 0) {
    int null = open("/dev/null", O_RDWR);
    for (int fd : {0, 1, 2}) dup2(null, fd);
    fcntl(image, F_SETFD, 0);
    std::string path = "/proc/self/fd/" + std::to_string(image);
    // One copy of the metadata: the disk below has its own ways to be safe.
    execl("/sbin/mkfs.btrfs", "mkfs.btrfs", "-q", "-f", "-m", "single", "-d", "single",
          "--nodiscard", path.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return fail_errno("wait", "mkfs.btrfs");
  if (status == 0) return {};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    return fail(ErrorCode::NotSupported, "mkfs.btrfs is missing; install btrfs-progs");
  }
  return fail(ErrorCode::Internal, "mkfs.btrfs failed with status " + std::to_string(status));
}

bool kernel_has_btrfs() { return os::fsopen("btrfs").valid(); }

Result<uint64_t> half_of_free(int data) {
  struct statvfs info {};
  if (fstatvfs(data, &info) != 0) return fail_errno("statvfs", "the data directory");
  return std::max(kLeastBytes, uint64_t{info.f_bavail} * info.f_frsize / 2);
}

// Formatted under another name: an image that is there is whole.
Result<UniqueFd> make_image(int data, uint64_t bytes) {
  if (bytes == 0) {
    ATOLL_ASSIGN(bytes, half_of_free(data));
  }
  constexpr int kNew = O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd image(openat(data, kUnfinished, kNew, 0600));
  if (!image.valid()) return fail_errno("create", kUnfinished);
  if (ftruncate(image.get(), static_cast<off_t>(std::max(bytes, kLeastBytes))) != 0) {
    return fail_errno("size", kUnfinished);
  }
  if (auto made = run_mkfs(image.get()); !made) {
    unlinkat(data, kUnfinished, 0);
    return fail(std::move(made).error());
  }
  if (fsync(image.get()) != 0 || renameat(data, kUnfinished, data, kImage) != 0) {
    return fail_errno("rename", kImage);
  }
  return image;
}

Result<UniqueFd> open_image(int data, uint64_t bytes) {
  UniqueFd image(openat(data, kImage, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (image.valid()) return image;
  if (errno != ENOENT) return fail_errno("open", kImage);
  return make_image(data, bytes);
}

Result<UniqueFd> mount_device(const std::string& device) {
  UniqueFd context = os::fsopen("btrfs");
  if (!context.valid()) return fail_errno("fsopen", "btrfs");
  if (os::fsconfig(context.get(), FSCONFIG_SET_STRING, "source", device.c_str(), 0) != 0 ||
      os::fsconfig(context.get(), FSCONFIG_SET_STRING, "discard", "async", 0) != 0 ||
      // Room for metadata before data takes it all: what cannot be recorded cannot be removed.
      os::fsconfig(context.get(), FSCONFIG_SET_STRING, "metadata_ratio", "4", 0) != 0 ||
      os::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return fail(Error::from_errno(errno, "mount", kImage)
                    .context("the pool of sandboxes' files is damaged, or in use elsewhere"));
  }
  UniqueFd mounted = os::fsmount(context.get(), MOUNT_ATTR_NOATIME | MOUNT_ATTR_NOSUID);
  if (!mounted.valid()) return fail_errno("fsmount", kImage);
  return mounted;
}

// The kernel may still be letting go of an earlier launcher's mount.
Result<UniqueFd> mount_patiently(int image, os::LoopDevice& device) {
  constexpr int kAttempts = 400;
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 5'000'000};
  for (int attempt = 1;; attempt++) {
    ATOLL_ASSIGN(device, os::attach_loop(image));
    auto mounted = mount_device(device.path);
    if (mounted || attempt == kAttempts) return mounted;
    device = {};
    nanosleep(&kPause, nullptr);
  }
}

Result<uint64_t> size_of_image(int image) {
  struct stat info {};
  if (fstat(image, &info) != 0) return fail_errno("stat", kImage);
  return static_cast<uint64_t>(info.st_size);
}

Result<void> grow_image(uint64_t bytes, int image, const os::LoopDevice& device, int root) {
  if (ftruncate(image, static_cast<off_t>(bytes)) != 0) {
    if (errno != EFBIG && errno != EINVAL) return fail_errno("grow", kImage);
    return fail(ErrorCode::InvalidArgument, "no file of the host's can be so large");
  }
  ATOLL_TRY(os::take_new_size(device));
  return os::btrfs::grow(root);
}

struct MountedImage {
  UniqueFd mount;
  UniqueFd image;
  os::LoopDevice device;
};

Result<MountedImage> mount_image(int data, uint64_t bytes) {
  if (!kernel_has_btrfs()) return fail(ErrorCode::NotSupported, "this kernel has no btrfs");
  MountedImage made;
  ATOLL_ASSIGN(made.image, open_image(data, bytes));
  ATOLL_ASSIGN(made.mount, mount_patiently(made.image.get(), made.device));
  ATOLL_ASSIGN(UniqueFd root, os::open_dir_at(made.mount.get(), "."));
  ATOLL_TRY(os::btrfs::enable_quota(root.get()));
  ATOLL_ASSIGN(uint64_t now, size_of_image(made.image.get()));
  if (bytes > now) ATOLL_TRY(grow_image(bytes, made.image.get(), made.device, root.get()));
  return made;
}

Result<UniqueFd> clone_directory(int data) {
  UniqueFd tree = os::open_tree(data, kDirectory, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (!tree.valid()) return fail_errno("open_tree", kDirectory);
  return tree;
}

}  // namespace

Result<std::optional<StatePool>> StatePool::find(const std::string& data_dir) {
  ATOLL_ASSIGN(UniqueFd data, os::open_dir_at(AT_FDCWD, data_dir.c_str()));
  StatePool pool;
  if (faccessat(data.get(), kImage, F_OK, 0) == 0) {
    ATOLL_ASSIGN(MountedImage mounted, mount_image(data.get(), 0));
    pool.mount_ = std::move(mounted.mount);
  } else if (faccessat(data.get(), kDirectory, F_OK, 0) == 0) {
    ATOLL_ASSIGN(pool.mount_, clone_directory(data.get()));
    if (!os::btrfs::holds(data.get())) pool.lacking_ = "the pool was made without it";
  } else {
    return std::nullopt;
  }
  ATOLL_TRY(pool.open_directories());
  return pool;
}

Result<StatePool> StatePool::open(const std::string& data_dir, uint64_t bytes) {
  ATOLL_ASSIGN(UniqueFd data, os::open_dir_at(AT_FDCWD, data_dir.c_str()));
  StatePool pool;
  bool has_image = faccessat(data.get(), kImage, F_OK, 0) == 0;
  bool has_directory = faccessat(data.get(), kDirectory, F_OK, 0) == 0;
  if (has_image || (!has_directory && !os::btrfs::holds(data.get()))) {
    auto mounted = mount_image(data.get(), bytes);
    if (mounted) {
      pool.mount_ = std::move(mounted->mount);
      pool.image_ = std::move(mounted->image);
      pool.device_ = std::move(mounted->device);
    }
    // A pool that is there holds sandboxes: without it there is nothing to serve.
    if (!mounted && (has_image || mounted.error().code() != ErrorCode::NotSupported)) {
      return fail(std::move(mounted).error());
    }
    if (!mounted) pool.lacking_ = mounted.error().message();
  }
  if (!pool.mount_.valid()) {
    ATOLL_TRY(os::make_dir_at(data.get(), kDirectory, 0700));
    ATOLL_ASSIGN(pool.mount_, clone_directory(data.get()));
    bool copies = os::btrfs::holds(data.get());
    if (!copies && pool.lacking_.empty()) pool.lacking_ = "the pool was made without it";
  }
  ATOLL_TRY(pool.open_directories());
  return pool;
}

Result<void> StatePool::open_directories() {
  for (const char* name : {"sandboxes", "states", "trash", "aside"}) {
    ATOLL_TRY(os::make_dir_at(mount_.get(), name, 0700));
  }
  ATOLL_ASSIGN(sandboxes_, os::open_dir_at(mount_.get(), "sandboxes"));
  ATOLL_ASSIGN(states_, os::open_dir_at(mount_.get(), "states"));
  ATOLL_ASSIGN(trash_, os::open_dir_at(mount_.get(), "trash"));
  return {};
}

Result<void> StatePool::grow(uint64_t bytes) const {
  if (!growable()) {
    return fail(ErrorCode::NotSupported,
                "the pool is a directory of the data directory; it has all that the disk has");
  }
  ATOLL_ASSIGN(uint64_t now, size_of_image(image_.get()));
  if (bytes < now) {
    return fail(ErrorCode::InvalidArgument,
                "the pool has " + std::to_string(now) + " bytes already and never shrinks");
  }
  return grow_image(bytes, image_.get(), device_, sandboxes_.get());
}

Result<StatePool::Room> StatePool::room() const {
  struct statvfs info {};
  if (fstatvfs(sandboxes_.get(), &info) != 0) return fail_errno("statvfs", "the pool");
  return Room{.bytes = uint64_t{info.f_blocks} * info.f_frsize,
              .free_bytes = uint64_t{info.f_bavail} * info.f_frsize};
}

Result<void> StatePool::attach(const char* place) {
  if (os::move_mount(mount_.get(), "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return fail_errno("move_mount", place);
  }
  return {};
}

Result<void> StatePool::set_aside(const std::string& sandbox, const std::string& group) const {
  std::string dir = "aside/" + group;
  ATOLL_TRY(os::make_dir_at(mount_.get(), dir.c_str(), 0700));
  if (renameat(sandboxes(), sandbox.c_str(), mount_.get(), (dir + "/" + sandbox).c_str()) != 0) {
    return fail_errno("move aside", sandbox);
  }
  return {};
}

static Error cannot(const char* what, const std::string& why) {
  return Error(ErrorCode::NotSupported, std::string(what) + " needs btrfs: " + why);
}

Result<void> StatePool::make_tree(int parent, const std::string& name) const {
  if (lacking_.empty()) return os::btrfs::make_subvolume(parent, name);
  return os::make_dir_at(parent, name.c_str(), 0755);
}

Result<void> StatePool::copy_tree(int from, const std::string& source, int to,
                                  const std::string& name) const {
  if (!lacking_.empty()) return fail(cannot("a copy of a sandbox's files", lacking_));
  ATOLL_ASSIGN(UniqueFd tree, os::open_beneath(from, source.c_str(), O_RDONLY | O_DIRECTORY));
  return os::btrfs::snapshot(tree.get(), to, name, os::btrfs::Mode::Writable);
}

Result<void> StatePool::keep_tree(int from, const std::string& source,
                                  const std::string& state) const {
  if (!lacking_.empty()) return fail(cannot("a snapshot", lacking_));
  ATOLL_ASSIGN(UniqueFd tree, os::open_beneath(from, source.c_str(), O_RDONLY | O_DIRECTORY));
  return os::btrfs::snapshot(tree.get(), states(), state, os::btrfs::Mode::ReadOnly);
}

Result<void> StatePool::release_state(const std::string& state) const {
  auto tree = os::open_beneath(states(), state.c_str(), O_RDONLY | O_DIRECTORY);
  if (!tree && tree.error().sys_errno() == ENOENT) return {};
  if (!tree) return fail(std::move(tree).error());
  return lacking_.empty() ? os::btrfs::make_writable(tree->get()) : Result<void>();
}

uint64_t StatePool::size_of(int parent, const std::string& name) const {
  auto tree = os::open_beneath(parent, name.c_str(), O_RDONLY | O_DIRECTORY);
  if (!tree || !lacking_.empty()) return 0;
  return os::btrfs::used_bytes(tree->get()).value_or(0);
}

Result<void> StatePool::limit_tree(int tree, uint64_t bytes) const {
  if (!lacking_.empty()) {
    return bytes == 0 ? Result<void>() : fail(cannot("a disk limit", lacking_));
  }
  return os::btrfs::set_limit(tree, bytes);
}

}  // namespace atl::storage
