// The files of a dump: what is read of them, and the two that are written anew for a copy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace atl::criu {

// Names of all files there.
Result<std::vector<std::string>> list_images(int dir);

// The map of ids 0 to 65535 of the dumped user namespace becomes one to `base` and up. Anything but
// such a map is refused.
Result<void> rewrite_id_maps(int dir, const std::string& name, uint32_t base);
Result<void> rewrite_host_name(int dir, const std::string& name, const std::string& host_name);

// For how long the processes stood still.
Result<uint32_t> frozen_us(int dir);

// What the log gives as the cause of a failure, in words for the owner of the processes.
std::string reason_in_log(int dir, const char* log);
std::string explain(const std::string& log);

}  // namespace atl::criu
