// A blank sandbox: everything but its root filesystem. The process built here is PID 1 of its
// namespaces, sits in its control groups, wears its system call filter and has become the agent.
// It is made ahead of time and fits any template.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "os/cgroup_tree.h"
#include "storage/state_pool.h"
#include "wire/launcher_messages.h"

namespace atl::launcher {

struct ShellPlan {
  std::string slot;
  uint32_t id_base = 0;
  const std::vector<sock_filter>* filter = nullptr;
  int run_dir = -1;                          // holds <slot>.sock
  const storage::StatePool* pool = nullptr;  // gets the files of the sandbox to come
  uid_t server_uid = 0;
  gid_t server_gid = 0;
  os::CgroupLimits limits;
};

struct Shell {
  pid_t pid = 0;
  UniqueFd pidfd;
  UniqueFd mount_mapping;  // user namespace for its idmapped mounts
  UniqueFd files;          // BlankFiles::tree
};

// Runs in a process of its own (it joins the slot's v1 cgroups and network namespace, and waits
// several milliseconds for the kernel doing so). Where it fails `shell` may have a process all the
// same: it has been killed, and its parent, which is the caller's, has to reap it.
Result<void> build_shell(const ShellPlan& plan, os::CgroupTree& cgroups, Shell& shell);

}  // namespace atl::launcher
