#include "image/layer_store.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <string_view>
#include <vector>

#include "base/random_id.h"
#include "base/scope_exit.h"
#include "image/tree.h"
#include "os/file.h"
#include "os/id_map.h"

namespace atl::image {
namespace {

constexpr std::string_view kTemporaryPrefix = ".import-";
constexpr const char* kBytesAttribute = "trusted.atoll.bytes";
// Sandboxes' overlays are mounted by the host and without "userxattr", so it is the trusted one.
constexpr const char* kOpaqueAttribute = "trusted.overlay.opaque";

// We hold the lock, so a temporary directory can only be a retired layer or a dead writer's.
Result<void> remove_leftovers(int layers) {
  ATOLL_ASSIGN(std::vector<std::string> names, list_directory(layers));
  for (const std::string& name : names) {
    if (name.starts_with(kTemporaryPrefix)) ATOLL_TRY(remove_tree(layers, name));
  }
  return {};
}

// ext4 puts directories near their parent, so the next layer comes to where one was removed a
// moment ago, and each of its files passes over all inodes that were freed there within half a
// minute. As the hierarchies of their own that they are, layers are spread. Other file systems need
// no hint.
void spread_layers(int layers) {
  int flags = 0;
  if (ioctl(layers, FS_IOC_GETFLAGS, &flags) != 0 || (flags & FS_TOPDIR_FL) != 0) return;
  flags |= FS_TOPDIR_FL;
  (void)ioctl(layers, FS_IOC_SETFLAGS, &flags);
}

}  // namespace

Result<LayerStore> LayerStore::open(const std::string& path) {
  ATOLL_ASSIGN(UniqueFd dir, open_or_create_directory(path));
  // Search only: the mapped root of a sandbox mount must get through, nobody needs to list it.
  if (fchmod(dir.get(), 0711) != 0) return fail_errno("fchmod", path);
  spread_layers(dir.get());
  return LayerStore(path, std::move(dir));
}

bool LayerStore::has(const std::string& id) const {
  return os::open_beneath(dir_.get(), id.c_str(), O_PATH | O_DIRECTORY).has_value();
}

Result<UniqueFd> LayerStore::lock() const {
  UniqueFd lock(openat(dir_.get(), ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return fail_errno("openat", ".lock");
  while (flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return fail_errno("flock", ".lock");
  }
  ATOLL_TRY(remove_leftovers(dir_.get()));
  return lock;
}

Result<void> LayerStore::add(const std::string& id,
                             const std::function<Result<void>(const Room&)>& fill) const {
  std::string temporary = random_id(kTemporaryPrefix);
  std::string empty = temporary + "-nowhere";
  ScopeExit cleanup([&] {
    [[maybe_unused]] Result<void> ignored = remove_tree(dir_.get(), temporary);
    ignored = remove_tree(dir_.get(), empty);
  });
  Attributes root{0755, os::kDiskIdBase, os::kDiskIdBase};
  Room room;
  ATOLL_ASSIGN(room.layer, ensure_directory(dir_.get(), temporary, root, Existing::Reset));
  ATOLL_ASSIGN(room.nowhere, ensure_directory(dir_.get(), empty, {0700, 0, 0}, Existing::Reset));
  ATOLL_TRY(fill(room));
  if (syncfs(dir_.get()) != 0) return fail_errno("syncfs", path_);
  if (renameat2(dir_.get(), temporary.c_str(), dir_.get(), id.c_str(), RENAME_NOREPLACE) != 0) {
    return fail_errno("renameat2", id);
  }
  if (fsync(dir_.get()) != 0) return fail_errno("fsync", path_);
  return {};
}

Result<void> LayerStore::retire_all_but(const std::set<std::string>& keep) const {
  ATOLL_ASSIGN(std::vector<std::string> names, list_directory(dir_.get()));
  for (const std::string& name : names) {
    if (name.front() == '.' || keep.contains(name)) continue;
    std::string gone = random_id(kTemporaryPrefix);
    if (renameat(dir_.get(), name.c_str(), dir_.get(), gone.c_str()) != 0) {
      return fail_errno("renameat", name);
    }
  }
  return {};
}

Result<LayerMarks> LayerStore::marks(const std::string& id) const {
  ATOLL_ASSIGN(UniqueFd layer, os::open_beneath(dir_.get(), id.c_str(), O_RDONLY | O_DIRECTORY));
  LayerMarks marks;
  char value = 0;
  marks.opaque = fgetxattr(layer.get(), kOpaqueAttribute, &value, 1) == 1 && value == 'y';
  if (fgetxattr(layer.get(), kBytesAttribute, &marks.bytes, sizeof marks.bytes) < 0)
    marks.bytes = 0;
  return marks;
}

Result<void> note_bytes(int layer, uint64_t bytes) {
  if (fsetxattr(layer, kBytesAttribute, &bytes, sizeof bytes, 0) != 0) {
    return fail_errno("fsetxattr", kBytesAttribute);
  }
  return {};
}

Result<void> mark_opaque(int layer, const std::vector<std::string>& directories) {
  for (const std::string& path : directories) {
    ATOLL_ASSIGN(UniqueFd dir, os::open_beneath(layer, path.c_str(), O_RDONLY | O_DIRECTORY));
    if (fsetxattr(dir.get(), kOpaqueAttribute, "y", 1, 0) != 0)
      return fail_errno("fsetxattr", path);
  }
  return {};
}

}  // namespace atl::image
