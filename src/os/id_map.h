// User namespaces: the id block of a sandbox, and the mapping its mounts use.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::os {

// Every sandbox has a block of this many ids of its own; host id 0 is in none of them.
inline constexpr uint32_t kIdBlockSize = 65536;
inline constexpr uint32_t kFirstIdBlock = 8;     // 8 * 65536 = 524288
inline constexpr uint32_t kLastIdBlock = 28671;  // ends at 1879048191
// On disk everything belongs to this block, which no host account uses.
inline constexpr uint32_t kDiskIdBase = 2147352576;

inline uint32_t id_block_base(uint32_t block) { return block * kIdBlockSize; }

// Maps inside..inside+65535 of process `pid`'s user namespace to outside.. of ours.
Result<void> write_id_maps(int proc_dir, pid_t pid, uint32_t inside, uint32_t outside);
// A user namespace that only serves as a mount's mapping: disk ids to the block's ids.
Result<UniqueFd> make_mount_mapping(int proc_dir, uint32_t block_base);

}  // namespace atl::os
