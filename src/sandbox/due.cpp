#include "sandbox/due.h"

#include <algorithm>

namespace atl::sandbox {

static bool over(const BootTime& since, uint32_t limit_s, const BootTime& now) {
  return limit_s != 0 && now.ms > since.ms + int64_t{limit_s} * 1000;
}

Due due(const Sandbox& sandbox, const BootTime& now) {
  const Record& record = sandbox.record;
  const Spec& spec = record.spec;
  if (sandbox.handle != nullptr) {
    if (over(record.since, spec.max_lifetime_s, now)) return Due::Lifetime;
    bool idle = sandbox.in_use == 0 && over(sandbox.active, spec.idle_timeout_s, now);
    return idle ? Due::Idle : Due::Nothing;
  }
  if (record.status == Status::Paused) return Due::Nothing;  // to disk: it waits to go on
  bool shelved = record.ended_at_ms != 0 && over(record.since, spec.delete_after_stopped_s, now);
  return shelved ? Due::Shelved : Due::Nothing;
}

BootTime on_this_boot(const Record& record, const BootTime& now, int64_t wall_now_ms) {
  if (record.since.boot == now.boot) return record.since;
  int64_t wall = record.ended_at_ms != 0 ? record.ended_at_ms : record.started_at_ms;
  return {now.boot, now.ms - std::max<int64_t>(0, wall_now_ms - wall)};
}

}  // namespace atl::sandbox
