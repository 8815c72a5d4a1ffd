#pragma once

#include <string>

#include "atoll/client.h"

namespace atl::client {

// What is in `directory` as a tar stream, names relative to it, with modes and times. Symbolic
// links stay links. Sockets, pipes and devices are left out and counted.
Result<TransferReport> pack_tar(const std::string& directory, const ByteSink& sink);

// About how many bytes that stream will have, for progress.
Result<uint64_t> tree_bytes(const std::string& directory);

}  // namespace atl::client
