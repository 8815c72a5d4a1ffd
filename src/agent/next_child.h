// The child that becomes the next command. Where a command is likely to come soon, one is made
// ahead, so that it finds its process, cgroup and filter in place.
#pragma once

#include <memory>
#include <vector>

#include "agent/cgroup_pool.h"
#include "agent/spawn.h"

namespace atl::agent {

struct PreparedChild {
  std::unique_ptr<Launch> launch;
  std::unique_ptr<ExecCgroup> cgroup;  // none where the host has no cgroup for it
};

class NextChild {
 public:
  explicit NextChild(CgroupPool& cgroups) : cgroups_(cgroups) {}

  // The child made ahead, or one made now.
  tl::expected<PreparedChild, SpawnFailure> take(Profile profile);
  // Makes a child ahead, which is sent away when no command comes within a second.
  void restock(Profile profile);
  // A command has ended. The next is likely to come where they followed one another within a
  // second.
  void command_ended(Profile profile);
  uint64_t deadline_ms() const { return waiting_.launch != nullptr ? expires_ms_ : 0; }
  void enforce_deadline(uint64_t now_ms);
  // A child of ours has ended, or something inside has stopped it; true if it had no command.
  bool settle(pid_t pid, bool stopped);
  // Sends a waiting child away: it shares our memory, which no checkpoint can hold. True once none
  // is left.
  bool send_away();

 private:
  tl::expected<PreparedChild, SpawnFailure> prepare(Profile profile);

  CgroupPool& cgroups_;
  PreparedChild waiting_;
  std::vector<PreparedChild> leaving_;
  uint64_t expires_ms_ = 0;     // of the child
  uint64_t last_ended_ms_ = 0;  // 0: no command yet
};

}  // namespace atl::agent
