// What must be the same of processes that were kept and run again: how they are confined. Recorded
// while they stand still for the checkpoint, and compared before the revived ones take their first
// step.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/cgroup_tree.h"

namespace atl::launcher {

// One thread of the sandbox's.
struct TaskFacts {
  int32_t pid = 0;          // of the thread, as the sandbox counts
  std::string confinement;  // from /proc/PID/status, ids relative to the sandbox's block
  void visit(auto& v) { v(pid, confinement); }
  bool operator==(const TaskFacts&) const = default;
};

struct MountFacts {
  std::string place;
  std::string root;     // of the file system
  std::string type;     // of it
  std::string options;  // of the mount
  void visit(auto& v) { v(place, root, type, options); }
};

struct GroupFacts {
  std::string name;
  std::vector<int32_t> processes;  // as the sandbox counts
  void visit(auto& v) { v(name, processes); }
};

struct Manifest {
  uint32_t version = 1;
  std::string kernel;
  std::string cpu;    // what its processors can do
  std::string agent;  // the digest of the agent's executable
  std::string sandbox;
  uint32_t id_base = 0;
  uint64_t listener = 0;   // the inode of the agent's socket
  std::string cgroup_key;  // the agent's control group, as criu names it
  std::vector<TaskFacts> tasks;
  std::vector<MountFacts> mounts;
  std::vector<GroupFacts> groups;
  uint64_t bytes = 0;
  void visit(auto& v) {
    v(version, kernel, cpu, agent, sandbox, id_base, listener, cgroup_key, tasks, mounts, groups,
      bytes);
  }
};

// Of this host.
std::string kernel_release();
std::string cpu_features();

Result<std::vector<MountFacts>> read_mounts(pid_t pid);
// Every thread of these processes that is in a process namespace of its own.
Result<std::vector<TaskFacts>> read_tasks(const std::vector<pid_t>& processes, uint32_t id_base);
// The pid that a process has in its own namespace; 0: it is in ours.
int32_t inner_pid(pid_t pid);
// All processes of a sandbox, also those in the groups of its commands.
std::vector<pid_t> all_processes(os::CgroupTree& cgroups, const std::string& slot);

// Whether the image can be brought to life here.
Result<void> check_host(const Manifest& manifest, const std::string& agent);

struct RevivedPlace {
  pid_t pid = 0;  // of its PID 1
  uint32_t id_base = 0;
};
// Whether the processes, which stand still, are confined as the manifest says. The caller is in the
// network and cgroup namespaces that they must be in.
Result<void> check_isolation(const Manifest& manifest, const RevivedPlace& revived,
                             const std::vector<pid_t>& processes);

}  // namespace atl::launcher
