// Many clients at once, each with a connection of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox_api.h"

namespace atl::bench {

inline constexpr unsigned kClients = 8;

// Execs per second over `seconds`; client i runs in ids[i % size].
Result<double> exec_rate(const std::string& endpoint, const std::vector<std::string>& ids,
                         double seconds);

// Calls `work` once for each index below `count`, from all clients; the first failure ends it.
Result<void> for_each_parallel(const std::string& endpoint, size_t count,
                               const std::function<Result<void>(SandboxApi&, size_t)>& work);

}  // namespace atl::bench
