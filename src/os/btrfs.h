// What is needed of btrfs: trees of files that are copied at once, whatever their size, and that
// have a limit each.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace atl::os::btrfs {

bool holds(int dir);
bool is_subvolume(int parent, const char* name);
Result<void> make_subvolume(int parent, const std::string& name);
// The copy has what had been written to `source` when this was called.
enum class Mode : uint8_t { Writable, ReadOnly };
Result<void> snapshot(int source, int parent, const std::string& name, Mode mode);
// Answers at once; the kernel gives the space back in the background.
Result<void> destroy_subvolume(int parent, const std::string& name);
Result<void> make_writable(int subvolume);
// Space of what was removed is free for others only after a commit, which otherwise may be half a
// minute away. Does not wait for it.
Result<void> begin_commit(int dir);

// Accounts for each subvolume what it wrote itself, so that a limit costs next to nothing. Kernels
// before 6.7 account for sharing too, which makes snapshots slower.
Result<void> enable_quota(int dir);
Result<void> set_limit(int subvolume, uint64_t bytes);  // 0: none
// Bytes that the subvolume wrote and that are still in use.
Result<uint64_t> used_bytes(int subvolume);
// The file system takes all of its device, which has grown.
Result<void> grow(int dir);

}  // namespace atl::os::btrfs
