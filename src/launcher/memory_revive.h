// Brings kept processes back to life, as the sandbox that they were or as another: with files,
// control groups, network, ids and a host name of its own.
#pragma once

#include <string>

#include "launcher/memory_dump.h"

namespace atl::launcher {

struct RevivePlan {
  const Workshop* workshop = nullptr;
  os::CgroupTree* cgroups = nullptr;
  const storage::StatePool* pool = nullptr;
  int sockets_dir = -1;
  int layers_dir = -1;
  int images = -1;
  wire::ReviveRequest request;
  std::string slot;
  uint32_t id_base = 0;
  uid_t server_uid = 0;
  gid_t server_gid = 0;
  std::string agent;  // digest
};

struct Revived {
  pid_t pid = 0;
  UniqueFd pidfd;
};

// In a process of its own, which joins the control groups and namespaces of the sandbox to be.
// Where it fails, what there is of the sandbox is in its control group and is to be killed there.
Result<Revived> revive(const RevivePlan& plan);

}  // namespace atl::launcher
