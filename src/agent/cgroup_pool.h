// One cgroup (v2) per command, so that an abort reaches its whole tree, also what daemonised away.
// Emptied ones are used again: starting a process in a fresh cgroup costs about 100 microseconds
// more than in one that has been used before.
#pragma once

#include <memory>
#include <vector>

#include "base/unique_fd.h"

namespace atl::agent {

class ExecCgroup {
 public:
  ExecCgroup(UniqueFd dir, UniqueFd events) : dir_(std::move(dir)), events_(std::move(events)) {}
  int fd() const { return dir_.get(); }
  bool populated() const;
  void kill() const;

 private:
  UniqueFd dir_;
  UniqueFd events_;
};

class CgroupPool {
 public:
  // `root` is the sandbox's own cgroup directory; invalid where the host has no cgroup v2.
  explicit CgroupPool(UniqueFd root) : root_(std::move(root)) {}

  // Null where cgroups are not to be had; the command then runs in the sandbox's own.
  std::unique_ptr<ExecCgroup> acquire();
  void release(std::unique_ptr<ExecCgroup> group);

 private:
  std::unique_ptr<ExecCgroup> create();

  UniqueFd root_;
  std::vector<std::unique_ptr<ExecCgroup>> idle_;
  int created_ = 0;
};

}  // namespace atl::agent
