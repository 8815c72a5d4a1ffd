// A sandbox's root filesystem: overlayfs over the template's layers, both sides mapped from the
// on-disk id range to the sandbox's own block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "storage/state_pool.h"

namespace atl::launcher {

// A writable directory made ahead for a sandbox that has no name yet.
struct BlankFiles {
  std::string name;  // in the sandboxes directory; starts with a dot until it is somebody's
  UniqueFd tree;     // holds `upper` and `work`, ids mapped
};
Result<BlankFiles> make_blank_files(const storage::StatePool& pool, const std::string& slot,
                                    int mount_mapping);
// Makes the working directory of a copied tree anew: overlayfs does not take another mount's.
Result<void> renew_work(int parent, const std::string& tree);

struct RootfsPlan {
  const storage::StatePool* pool = nullptr;
  int layers_dir = -1;
  std::vector<std::string> layers;  // topmost first: in layers_dir, or states of the pool
  std::string sandbox;
  bool existing = false;  // it must have files already; else the blank ones may become its own
  BlankFiles blank;
  int mount_mapping = -1;
  uint32_t id_base = 0;
  bool ephemeral = false;
  uint64_t disk_bytes = 0;  // 0: no limit of its own
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
