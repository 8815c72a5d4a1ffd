// One cgroup (v2) per command, so that an abort reaches its whole tree, also what daemonised away.
// Emptied ones are used again: starting a process in a fresh cgroup costs about 100 microseconds
// more than in one that has been used before.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace atl::agent {

class ExecCgroup {
 public:
  // `root` is the directory that it is in, and outlives it.
  ExecCgroup(const UniqueFd& root, std::string name) : root_(root), name_(std::move(name)) {}
  // False where it is not to be had.
  bool open();
  // Its descriptors are the host's, which no checkpoint can hold; they are opened again when
  // needed.
  void close();
  int fd() { return open() ? dir_.get() : -1; }
  const std::string& name() const { return name_; }
  bool populated();
  // A killed group is spent: the kernel kills whatever is started in it later.
  void kill();
  bool killed() const { return killed_; }

 private:
  const UniqueFd& root_;
  std::string name_;
  UniqueFd dir_;
  UniqueFd events_;
  bool killed_ = false;
};

class CgroupPool {
 public:
  // `root` is the sandbox's own cgroup directory; invalid where the host has no cgroup v2.
  explicit CgroupPool(UniqueFd root) : root_(std::move(root)) {}

  // Null where cgroups are not to be had; the command then runs in the sandbox's own.
  std::unique_ptr<ExecCgroup> acquire();
  void release(std::unique_ptr<ExecCgroup> group);
  // Same, where the caller has just seen that nothing is left in it.
  void release_empty(std::unique_ptr<ExecCgroup> group);
  // Makes the first ahead, while nobody waits for it.
  void stock();
  // Closes what is open of those that no command has now.
  void close_all();

 private:
  std::unique_ptr<ExecCgroup> create();
  void remove_spent();

  UniqueFd root_;
  std::vector<std::unique_ptr<ExecCgroup>> empty_;
  std::vector<std::unique_ptr<ExecCgroup>> crowded_;  // with processes that outlived their command
  std::vector<std::string> spent_;
  int created_ = 0;
};

}  // namespace atl::agent
