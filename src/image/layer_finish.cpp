#include "image/layer_finish.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/unique_fd.h"
#include "image/tree.h"
#include "os/file.h"
#include "os/id_map.h"

namespace atl::image {
namespace {

struct DeviceNode {
  const char* name;
  unsigned int major;
  unsigned int minor;
};
constexpr DeviceNode kDeviceNodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
                                       {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

struct Link {
  const char* name;
  const char* target;
};
constexpr Link kDeviceLinks[] = {{"fd", "/proc/self/fd"},
                                 {"stdin", "/proc/self/fd/0"},
                                 {"stdout", "/proc/self/fd/1"},
                                 {"stderr", "/proc/self/fd/2"},
                                 {"ptmx", "pts/ptmx"}};

constexpr uid_t kUserId = 1000;

Attributes owned_by(uid_t inside, mode_t mode) {
  return {mode, os::kDiskIdBase + inside, os::kDiskIdBase + inside};
}

Result<void> own(int dir, const char* name) {
  if (fchownat(dir, name, os::kDiskIdBase, os::kDiskIdBase, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail_errno("fchownat", name);
  }
  return {};
}

Result<void> make_device(int dev, const DeviceNode& node) {
  ATOLL_TRY(remove_tree(dev, node.name));
  if (mknodat(dev, node.name, S_IFCHR | 0666, makedev(node.major, node.minor)) != 0) {
    return fail_errno("mknodat", node.name);
  }
  // The umask may have taken bits away; the node is ours, made a moment ago.
  if (fchmodat(dev, node.name, 0666, 0) != 0) return fail_errno("fchmodat", node.name);
  return own(dev, node.name);
}

Result<void> make_link(int dev, const Link& link) {
  ATOLL_TRY(remove_tree(dev, link.name));
  if (symlinkat(link.target, dev, link.name) != 0) return fail_errno("symlinkat", link.name);
  return own(dev, link.name);
}

Result<void> make_dev(int layer) {
  ATOLL_ASSIGN(UniqueFd dev, ensure_directory(layer, "dev", owned_by(0, 0755), Existing::Reset));
  for (const DeviceNode& node : kDeviceNodes) ATOLL_TRY(make_device(dev.get(), node));
  for (const Link& link : kDeviceLinks) ATOLL_TRY(make_link(dev.get(), link));
  ATOLL_TRY(ensure_directory(dev.get(), "pts", owned_by(0, 0755), Existing::Reset));
  ATOLL_TRY(ensure_directory(dev.get(), "shm", owned_by(0, 01777), Existing::Reset));
  return {};
}

// The agent's binary is bind-mounted onto this file.
Result<void> make_agent_mount_point(int layer) {
  ATOLL_ASSIGN(UniqueFd dir, ensure_directory(layer, ".atoll", owned_by(0, 0755), Existing::Reset));
  ATOLL_TRY(remove_tree(dir.get(), "agent"));
  UniqueFd agent(openat(dir.get(), "agent", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555));
  if (!agent.valid()) return fail_errno("openat", ".atoll/agent");
  if (fchmod(agent.get(), 0555) != 0) return fail_errno("fchmod", ".atoll/agent");
  return own(dir.get(), "agent");
}

// Where names are asked for: whatever the address, the gate answers. A file that says more than
// that there is nothing is the image's own.
Result<void> make_resolver_file(int layer) {
  constexpr const char* kName = "resolv.conf";
  constexpr off_t kSaysNothing = 64;
  ATOLL_ASSIGN(UniqueFd etc, ensure_directory(layer, "etc", owned_by(0, 0755), Existing::Keep));
  struct stat present {};
  bool there = fstatat(etc.get(), kName, &present, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && S_ISREG(present.st_mode) && present.st_size > kSaysNothing) return {};
  ATOLL_TRY(remove_tree(etc.get(), kName));
  UniqueFd file(openat(etc.get(), kName, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.valid()) return fail_errno("openat", kName);
  ATOLL_TRY(os::write_all(file.get(), "nameserver 10.0.2.3\n"));
  if (fchmod(file.get(), 0644) != 0) return fail_errno("fchmod", kName);
  return own(etc.get(), kName);
}

}  // namespace

Result<void> finish_layer(int layer_dir) {
  // An archive packed from a private directory carries mode 0700 for "/".
  if (fchown(layer_dir, os::kDiskIdBase, os::kDiskIdBase) != 0) return fail_errno("fchown");
  if (fchmod(layer_dir, 0755) != 0) return fail_errno("fchmod");
  ATOLL_TRY(make_dev(layer_dir));
  ATOLL_TRY(make_agent_mount_point(layer_dir));
  ATOLL_TRY(make_resolver_file(layer_dir));
  ATOLL_TRY(ensure_directory(layer_dir, "proc", owned_by(0, 0555), Existing::Reset));
  ATOLL_TRY(ensure_directory(layer_dir, "sys", owned_by(0, 0555), Existing::Reset));
  ATOLL_TRY(ensure_directory(layer_dir, "tmp", owned_by(0, 01777), Existing::Reset));
  ATOLL_TRY(ensure_directory(layer_dir, "workspace", owned_by(kUserId, 0775), Existing::Keep));
  return {};
}

}  // namespace atl::image
