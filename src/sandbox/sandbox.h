// One sandbox as the server knows it while it runs.
#pragma once

#include <memory>

#include "atoll/sandbox_backend.h"
#include "auth/quota.h"
#include "http/async_mutex.h"
#include "sandbox/network_log.h"
#include "sandbox/record.h"

namespace atl::sandbox {

enum class Source : uint8_t { Pool, Cold, Reattached };

class Sandbox {
 public:
  explicit Sandbox(boost::asio::any_io_executor executor, Record initial)
      : record(std::move(initial)), lifecycle(std::move(executor)) {}

  void touch() {
    last_activity_ms = wall_clock_ms();
    active = BootTime::now();
  }

  Record record;
  std::shared_ptr<SandboxHandle> handle;  // null unless it has processes
  Source source = Source::Cold;
  int64_t create_us = 0;
  int64_t last_activity_ms = 0;  // for people
  BootTime active;               // the same, for its deadline
  int64_t activity_told_ms = 0;  // when listeners last heard of activity
  int in_use = 0;                // requests under way inside it: it is not idle
  int visits = 0;                // requests and tunnels to its ports
  http::AsyncMutex lifecycle;    // one change of state at a time
  bool deleted = false;
  bool expiring = false;   // its time is over, and it is being ended
  std::string trusted_ca;  // the certificate that was put into it
  NetworkLog network_log;
};
using SandboxPtr = std::shared_ptr<Sandbox>;

// On whose behalf something is asked for.
struct Caller {
  Owner owner;
  auth::Quota quota;         // of the key
  bool all_tenants = false;  // an administrator: sees everybody's by id

  bool may_see(const Record& record) const {
    return all_tenants || record.owner.tenant == owner.tenant;
  }
};

inline auth::Quota demand(const Limits& limits) {
  return {.sandboxes = 1,
          .cpu_millis = limits.cpu_millis,
          .memory_bytes = limits.memory_bytes,
          .disk_bytes = limits.disk_bytes};
}

}  // namespace atl::sandbox
