#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "base/scope_exit.h"
#include "cli/doctor.h"
#include "cli/units.h"
#include "image/template.h"
#include "os/id_map.h"
#include "os/syscalls.h"

namespace atl::cli {
namespace {

constexpr uint64_t kComfortable = uint64_t{5} << 30;
constexpr uint64_t kLeast = uint64_t{1} << 30;

// The directory itself, or the nearest one above it that exists.
std::string existing(std::string path) {
  while (path.size() > 1 && access(path.c_str(), F_OK) != 0) {
    size_t slash = path.rfind('/');
    path = slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
  }
  return path;
}

std::string filesystem_name(const std::string& dir) {
  struct statfs info {};
  if (statfs(dir.c_str(), &info) != 0) return "unknown";
  switch (static_cast<uint32_t>(info.f_type)) {
    case 0xef53:
      return "ext4";
    case 0x58465342:
      return "xfs";
    case 0x9123683e:
      return "btrfs";
    case 0x01021994:
      return "tmpfs";
    case 0x794c7630:
      return "overlayfs";
    case 0x2fc12fc1:
      return "zfs";
    case 0x6969:
      return "nfs";
    case 0xf2f52010:
      return "f2fs";
    case 0xca451a4e:
      return "bcachefs";
    default:
      return fmt::format("type {:#x}", static_cast<uint32_t>(info.f_type));
  }
}

bool can_reflink(const std::string& dir) {
  UniqueFd from(open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  UniqueFd to(open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!from.valid() || !to.valid() || write(from.get(), "x", 1) != 1) return false;
  return ioctl(to.get(), FICLONE, from.get()) == 0;
}

Check check_filesystem(const std::string& dir) {
  std::string type = filesystem_name(dir);
  if (type == "overlayfs" || type == "nfs") {
    return missing("filesystem",
                   fmt::format("{} is on {}, which cannot hold a sandbox's changes", dir, type),
                   "put --data-dir on ext4, xfs or btrfs (in a container: on a volume)");
  }
  return check_ok("filesystem", fmt::format("{} on {}, {} reflinks", dir, type,
                                            can_reflink(dir) ? "with" : "without"));
}

Check check_copies(const std::string& dir) {
  if (filesystem_name(dir) == "btrfs")
    return check_ok("snapshots", "the data directory is on btrfs");
  std::string loss = ": no snapshots, forks or disk limits";
  if (!os::fsopen("btrfs").valid() && errno == ENODEV) {
    return degraded("snapshots", "this kernel has no btrfs" + loss, "use a kernel with btrfs");
  }
  if (access("/sbin/mkfs.btrfs", X_OK) != 0) {
    return degraded("snapshots", "mkfs.btrfs is missing" + loss, "apt-get install btrfs-progs");
  }
  return check_ok("snapshots", "in an image of their own, with btrfs");
}

Check check_space(const std::string& dir) {
  struct statvfs info {};
  if (statvfs(dir.c_str(), &info) != 0)
    return missing("disk space", strerror(errno), "check " + dir);
  uint64_t free = uint64_t{info.f_bavail} * info.f_frsize;
  std::string detail = fmt::format("{} free in {}", format_size(free), dir);
  std::string remedy = "free some, or put --data-dir elsewhere";
  if (free < kLeast) return missing("disk space", detail, remedy);
  if (free < kComfortable) return degraded("disk space", detail + ": soon full", remedy);
  return check_ok("disk space", detail);
}

Result<void> try_mapped_mount(const std::string& dir) {
  std::string path = dir + "/.atoll-doctor-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return fail_errno("mkdir", path);
  ScopeExit remove([&] { rmdir(path.c_str()); });
  UniqueFd proc(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ATOLL_ASSIGN(UniqueFd mapping,
               os::make_mount_mapping(proc.get(), os::id_block_base(os::kFirstIdBlock)));
  UniqueFd tree = os::open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (!tree.valid()) return fail_errno("open_tree", path);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<uint64_t>(mapping.get());
  if (os::mount_setattr(tree.get(), "", AT_EMPTY_PATH, attributes) != 0) {
    return fail_errno("mount_setattr", path);
  }
  return {};
}

Check check_mapped_mounts(const std::string& dir) {
  auto tried = try_mapped_mount(dir);
  if (tried) return check_ok("idmapped mounts", "work in " + dir);
  if (geteuid() != 0) {
    return degraded("idmapped mounts", "could not be tried without root", "sudo atoll doctor");
  }
  return missing("idmapped mounts", tried.error().message(),
                 "put --data-dir on a filesystem that has them: ext4, xfs or btrfs");
}

Check check_templates(const DoctorSettings& settings) {
  auto templates = image::list_templates(settings.data_dir + "/templates");
  std::string remedy = "./dev setup, or atoll template import FILE --name base";
  if (!templates && geteuid() != 0) {
    return degraded("template", "cannot be read without root", "sudo atoll doctor");
  }
  if (!templates) return missing("template", templates.error().message(), remedy);
  if (templates->empty()) {
    return missing("template", "none in " + settings.data_dir + ": no sandbox can be made", remedy);
  }
  std::string names;
  for (const image::Template& found : *templates) names += (names.empty() ? "" : ", ") + found.name;
  return check_ok("template", names);
}

}  // namespace

std::vector<Check> storage_checks(const DoctorSettings& settings) {
  std::string dir = existing(settings.data_dir);
  return {check_filesystem(dir), check_copies(dir), check_space(dir), check_mapped_mounts(dir),
          check_templates(settings)};
}

}  // namespace atl::cli
