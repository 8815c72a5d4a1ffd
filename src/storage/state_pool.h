// Where sandboxes' files and kept states live: a btrfs file system, on which a tree of any size is
// copied at once. It is a directory of the data directory where that is btrfs, else a sparse image
// of its own there. Without btrfs the pool is plain directories, which cannot be copied or limited.
//
//   sandboxes/ID   the writable tree of a sandbox: `upper` and `work`
//   states/ID      the same, kept: never written again
//   trash/         what nobody wants any more
//   aside/         what a restored backup does not know
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "os/loop_device.h"

namespace atl::storage {

class StatePool {
 public:
  // Finds or makes it; `bytes` is the size of an image (0: half of what is free), which grows where
  // it is smaller. It is mounted nowhere yet. Needs the host's /dev and mkfs.
  static Result<StatePool> open(const std::string& data_dir, uint64_t bytes);
  // Nothing where there is none yet.
  static Result<std::optional<StatePool>> find(const std::string& data_dir);
  // Shows it at `place` in the caller's mount namespace.
  Result<void> attach(const char* place);

  int sandboxes() const { return sandboxes_.get(); }
  int states() const { return states_.get(); }
  int trash() const { return trash_.get(); }
  // Why nothing can be copied or limited here; empty where it can.
  const std::string& lacking() const { return lacking_; }

  // While it is used. NotSupported where it is not an image of ours; it never shrinks.
  Result<void> grow(uint64_t bytes) const;
  struct Room {
    uint64_t bytes = 0;
    uint64_t free_bytes = 0;
  };
  Result<Room> room() const;
  bool growable() const { return image_.valid(); }

  Result<void> make_tree(int parent, const std::string& name) const;
  Result<void> copy_tree(int from, const std::string& source, int to,
                         const std::string& name) const;
  // `from`/`source` as it is now, never to be written again.
  Result<void> keep_tree(int from, const std::string& source, const std::string& state) const;
  // Before a state can be moved to the trash: what is write-protected cannot be moved.
  Result<void> release_state(const std::string& state) const;
  Result<void> limit_tree(int tree, uint64_t bytes) const;
  // What it has written and still has; 0 where nobody counts.
  uint64_t size_of(int parent, const std::string& name) const;
  // Moves the files of a sandbox out of everybody's way, to aside/GROUP.
  Result<void> set_aside(const std::string& sandbox, const std::string& group) const;

 private:
  Result<void> open_directories();

  UniqueFd mount_;
  UniqueFd image_;  // where it is one
  os::LoopDevice device_;
  UniqueFd sandboxes_, states_, trash_;
  std::string lacking_;
};

}  // namespace atl::storage
