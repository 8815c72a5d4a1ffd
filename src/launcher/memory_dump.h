// Keeps the processes of a sandbox: criu writes them to files while they stand still.
#pragma once

#include <string>

#include "launcher/memory_facts.h"
#include "launcher/workshop.h"
#include "storage/state_pool.h"
#include "wire/launcher_messages.h"

namespace atl::launcher {

inline constexpr const char* kManifest = "manifest";

struct DumpPlan {
  const Workshop* workshop = nullptr;
  os::CgroupTree* cgroups = nullptr;
  const storage::StatePool* pool = nullptr;
  int sockets_dir = -1;
  int images = -1;  // the directory of all images
  wire::CheckpointRequest request;
  pid_t pid = 0;
  int pidfd = -1;
  uint32_t id_base = 0;
  std::string agent;  // digest
};

// In a process of its own, which it moves about.
Result<wire::Kept> dump_memory(const DumpPlan& plan);

// The masks over /proc and the agent's executable are mounts of the launcher's. `mnt[PLACE]:KEY`
// for a dump, `mnt[KEY]:PATH` for a restore. A mount that is neither these nor a sandbox's own is
// refused.
enum class MountsFor { Dump, Restore };
Result<std::vector<std::string>> external_mounts(const std::vector<MountFacts>& mounts,
                                                 MountsFor purpose);

}  // namespace atl::launcher
