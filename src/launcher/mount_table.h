// The launcher's own mount namespace: four mounts, so that the namespace of every sandbox, which
// starts as a copy of it, is cheap to make and has nothing of the host in it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::launcher {

// Paths in that namespace. Below kStage a slot's future mounts wait for their root filesystem.
inline constexpr const char* kDataDir = "/data";
inline constexpr const char* kPoolDir = "/pool";
inline constexpr const char* kNewRoot = "/root";
inline constexpr const char* kStageProc = "/stage/proc";
inline constexpr const char* kStagePts = "/stage/pts";
inline constexpr const char* kStageShm = "/stage/shm";
inline constexpr const char* kStageAgent = "/stage/agent";
inline constexpr const char* kEmptyDir = "/empty";
inline constexpr const char* kNull = "/null";
inline constexpr const char* kAgent = "/agent";
inline constexpr const char* kReadableAgent = "/agent-readable";
inline constexpr const char* kCriuDir = "/criu";
inline constexpr const char* kCriuConfig = "/criu.conf";

// Moves the calling process there for good. `scratch` is an existing directory to mount on. The
// agent's executable is put there too: every sandbox runs this private copy in memory, and none
// ever sees an inode of the host's disks.
Result<void> enter_minimal_mounts(const std::string& scratch, const std::string& data_dir,
                                  std::string_view agent);

}  // namespace atl::launcher
