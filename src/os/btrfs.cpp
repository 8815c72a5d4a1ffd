#include "os/btrfs.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/unique_fd.h"

namespace atl::os::btrfs {
namespace {

constexpr uint64_t kEnableSimpleQuota = 4;  // BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, since 6.7

template <size_t N>
Result<void> set_name(char (&to)[N], const std::string& name) {
  if (name.size() >= N) return fail(ErrorCode::InvalidArgument, "the name is too long: " + name);
  memcpy(to, name.c_str(), name.size() + 1);
  return {};
}

Result<uint64_t> tree_id(int subvolume) {
  btrfs_ioctl_ino_lookup_args args{};
  args.objectid = BTRFS_FIRST_FREE_OBJECTID;
  if (ioctl(subvolume, BTRFS_IOC_INO_LOOKUP, &args) != 0)
    return fail_errno("find a subvolume's id");
  return args.treeid;
}

// The one item of the quota tree that says what this subvolume holds.
Result<uint64_t> read_quota_item(int fd, uint64_t id) {
  btrfs_ioctl_search_args search{};
  btrfs_ioctl_search_key& key = search.key;
  key.tree_id = BTRFS_QUOTA_TREE_OBJECTID;
  key.min_type = key.max_type = BTRFS_QGROUP_INFO_KEY;
  key.min_offset = key.max_offset = id;
  key.max_transid = UINT64_MAX;
  key.nr_items = 1;
  if (ioctl(fd, BTRFS_IOC_TREE_SEARCH, &search) != 0) return fail_errno("read a subvolume's quota");
  if (key.nr_items != 1) return fail(ErrorCode::NotFound, "no quota item");
  btrfs_qgroup_info_item item{};
  memcpy(&item, search.buf + sizeof(btrfs_ioctl_search_header), sizeof item);
  return le64toh(item.rfer);
}

}  // namespace

bool holds(int dir) {
  struct statfs info {};
  return fstatfs(dir, &info) == 0 && info.f_type == BTRFS_SUPER_MAGIC;
}

bool is_subvolume(int parent, const char* name) {
  struct stat info {};
  if (!holds(parent) || fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
  return S_ISDIR(info.st_mode) && info.st_ino == BTRFS_FIRST_FREE_OBJECTID;
}

Result<void> make_subvolume(int parent, const std::string& name) {
  btrfs_ioctl_vol_args args{};
  ATOLL_TRY(set_name(args.name, name));
  if (ioctl(parent, BTRFS_IOC_SUBVOL_CREATE, &args) != 0) return fail_errno("make subvolume", name);
  return {};
}

Result<void> snapshot(int source, int parent, const std::string& name, Mode mode) {
  btrfs_ioctl_vol_args_v2 args{};
  ATOLL_TRY(set_name(args.name, name));
  args.fd = source;
  if (mode == Mode::ReadOnly) args.flags = BTRFS_SUBVOL_RDONLY;
  if (ioctl(parent, BTRFS_IOC_SNAP_CREATE_V2, &args) != 0) return fail_errno("snapshot", name);
  return {};
}

Result<void> destroy_subvolume(int parent, const std::string& name) {
  btrfs_ioctl_vol_args args{};
  ATOLL_TRY(set_name(args.name, name));
  if (ioctl(parent, BTRFS_IOC_SNAP_DESTROY, &args) != 0)
    return fail_errno("remove subvolume", name);
  return {};
}

Result<void> make_writable(int subvolume) {
  uint64_t flags = 0;
  if (ioctl(subvolume, BTRFS_IOC_SUBVOL_SETFLAGS, &flags) != 0) {
    return fail_errno("unprotect a subvolume");
  }
  return {};
}

Result<void> begin_commit(int dir) {
  uint64_t transaction = 0;
  if (ioctl(dir, BTRFS_IOC_START_SYNC, &transaction) != 0) return fail_errno("begin a commit");
  return {};
}

Result<void> enable_quota(int dir) {
  btrfs_ioctl_quota_ctl_args args{};
  for (uint64_t command : {kEnableSimpleQuota, uint64_t{BTRFS_QUOTA_CTL_ENABLE}}) {
    args.cmd = command;
    if (ioctl(dir, BTRFS_IOC_QUOTA_CTL, &args) == 0 || errno == EEXIST) return {};
  }
  return fail_errno("enable quota");
}

Result<void> set_limit(int subvolume, uint64_t bytes) {
  ATOLL_ASSIGN(uint64_t id, tree_id(subvolume));
  btrfs_ioctl_qgroup_limit_args args{};
  args.qgroupid = id;
  args.lim.flags = BTRFS_QGROUP_LIMIT_MAX_RFER;
  args.lim.max_rfer = bytes != 0 ? bytes : UINT64_MAX;  // all ones: no limit
  if (ioctl(subvolume, BTRFS_IOC_QGROUP_LIMIT, &args) != 0) return fail_errno("set the disk limit");
  return {};
}

Result<uint64_t> used_bytes(int subvolume) {
  ATOLL_ASSIGN(uint64_t id, tree_id(subvolume));
  return read_quota_item(subvolume, id);
}

Result<void> grow(int dir) {
  btrfs_ioctl_vol_args args{};
  ATOLL_TRY(set_name(args.name, "max"));
  if (ioctl(dir, BTRFS_IOC_RESIZE, &args) != 0) return fail_errno("grow the pool");
  return {};
}

}  // namespace atl::os::btrfs
