// Our subtree of the host's control groups: one directory per sandbox in every hierarchy in use.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "os/cgroup_host.h"

namespace atl::os {

struct CgroupLimits {
  uint64_t memory_bytes = 0;  // 0: unlimited
  uint32_t cpu_millis = 0;
  uint32_t pids = 0;
};

struct CgroupUsage {
  uint64_t memory_bytes = 0;
  uint64_t memory_peak_bytes = 0;
  uint64_t cache_bytes = 0;  // of the memory: files that could be read again
  uint64_t cpu_us = 0;
  uint32_t pids = 0;
  uint64_t oom_kills = 0;
};

class CgroupTree {
 public:
  // Opens or creates the subtree `name` in each hierarchy.
  static Result<CgroupTree> open(const CgroupLayout& layout, const std::string& name);

  // Directories for one sandbox; the v2 one is delegated to `owner` so that the agent can make
  // a group per command in it.
  Result<void> create(const std::string& group, uid_t owner);
  // Puts the calling process into the v1 groups. Waits for a grace period of the kernel's (several
  // milliseconds), so only a process that nobody waits for calls it.
  Result<void> join_legacy(const std::string& group);
  // And into the v2 group.
  Result<void> join_unified(const std::string& group);
  // The groups that an agent has made in its sandbox's v2 group, one per command.
  struct Subgroup {
    std::string name;
    std::vector<pid_t> processes;
  };
  std::vector<Subgroup> subgroups(const std::string& group);
  Result<void> make_subgroup(const std::string& group, const std::string& name, uid_t owner);
  Result<void> move_process(const std::string& group, const std::string& subgroup, pid_t pid);
  Result<void> set_limits(const std::string& group, const CgroupLimits& limits);
  Result<CgroupUsage> usage(const std::string& group);
  // The v2 directory, for clone3 and for the agent; invalid on hosts without v2.
  Result<UniqueFd> open_unified(const std::string& group);
  Result<void> kill(const std::string& group);
  Result<void> freeze(const std::string& group, bool frozen);
  // Waits until every process of it stands still.
  Result<void> await_frozen(const std::string& group, std::chrono::milliseconds limit);
  // True once nothing is left of it; false while the kernel still counts a process there.
  bool remove(const std::string& group);
  // Names of all groups there are in any hierarchy.
  std::vector<std::string> groups();
  // Every process of the group, in our pid namespace.
  std::vector<pid_t> processes(const std::string& group);
  // Removes the subtree itself, once empty.
  void remove_tree();

  CgroupMode mode() const { return mode_; }
  bool has_unified() const { return unified_.valid(); }

 private:
  struct Hierarchy {
    UniqueFd parent;
    UniqueFd dir;
    std::vector<std::string> controllers;  // empty for v2
  };
  static Result<Hierarchy> open_hierarchy(const std::string& mount, const std::string& name);
  const Hierarchy* legacy_for(std::string_view controller) const;
  Result<void> write_legacy(std::string_view controller, const std::string& group, const char* file,
                            const std::string& value);

  CgroupMode mode_ = CgroupMode::Legacy;
  std::string name_;
  UniqueFd unified_parent_;
  UniqueFd unified_;
  bool unified_limits_ = false;
  std::vector<Hierarchy> legacy_;
};

}  // namespace atl::os
