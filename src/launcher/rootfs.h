// A sandbox's root filesystem: overlayfs over the template's layers, both sides mapped from the
// on-disk id range to the sandbox's own block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "launcher/disk.h"

namespace atl::launcher {

// A writable directory made ahead for a sandbox that has no name yet.
struct BlankFiles {
  std::string name;  // in the sandboxes directory; starts with a dot until it is somebody's
  UniqueFd tree;     // holds `upper` and `work`, ids mapped
};
Result<BlankFiles> make_blank_files(int sandboxes_dir, const std::string& slot, int mount_mapping);

struct RootfsPlan {
  int layers_dir = -1;
  std::vector<std::string> layers;  // topmost first
  int sandboxes_dir = -1;
  std::string sandbox;
  BlankFiles blank;  // becomes the sandbox's, unless it has files already
  int mount_mapping = -1;
  uint32_t id_base = 0;
  bool ephemeral = false;
  uint64_t disk_bytes = 0;      // 0: on the data directory's own file system
  DiskImages* disks = nullptr;  // needed where disk_bytes is not 0
  // Set by mount_rootfs:
  bool fresh = false;          // the blank files became the sandbox's
  std::vector<UniqueFd> used;  // mounts that the overlay was made from; of no more use
};

// The overlay of the sandbox, mounted but not attached anywhere.
Result<UniqueFd> mount_rootfs(RootfsPlan& plan);

// Makes `rootfs` the root of the blank sandbox behind `pidfd`, moves its waiting mounts into it,
// and sets its host name. The launcher visits the sandbox's mount namespace to do so; nothing but
// the agent lives there yet.
Result<void> attach_rootfs(int pidfd, const UniqueFd& rootfs, const std::string& hostname);

}  // namespace atl::launcher
