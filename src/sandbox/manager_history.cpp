// A point before every command, and the way back.
#include <algorithm>

#include "base/log.h"
#include "sandbox/history.h"
#include "sandbox/manager.h"

namespace atl::sandbox {

std::vector<SnapshotPtr> Manager::history(const Sandbox& sandbox) const {
  std::vector<SnapshotPtr> points;
  for (const SnapshotPtr& snapshot : snapshots_.list({.all_tenants = true}, sandbox.record.id)) {
    if (snapshot->automatic) points.push_back(snapshot);
  }
  return points;
}

uint32_t Manager::next_point(const Sandbox& sandbox) const {
  uint32_t last = 0;
  for (const SnapshotPtr& point : history(sandbox)) last = std::max(last, point->number);
  return last + 1;
}

Result<SnapshotPtr> Manager::find_point(const Sandbox& sandbox, uint32_t number) const {
  for (const SnapshotPtr& point : history(sandbox)) {
    if (point->number == number) return point;
  }
  return fail(Error(ErrorCode::NotFound, "no state before command " + std::to_string(number) +
                                             " is kept; the history shows which are")
                  .with_field("to"));
}

Task<void> Manager::remove_points(std::vector<SnapshotPtr> points) {
  for (const SnapshotPtr& point : points) {
    auto removed = co_await remove_snapshot(point);
    if (removed) continue;
    log(LogLevel::Warning, "cannot remove a point of a sandbox's history",
        {{"snapshot", point->id}, {"error", removed.error().message()}});
  }
}

// A command that could not be undone is not run.
Task<Result<void>> Manager::before_command(SandboxPtr sandbox, std::string command) {
  if (!sandbox->record.spec.history) co_return Result<void>();
  // What was undone cannot be returned to once something else has happened.
  if (sandbox->record.untouched) {
    std::vector<SnapshotPtr> undone;
    for (const SnapshotPtr& point : std::vector(history(*sandbox))) {
      if (!undone.empty() || point->id == sandbox->record.snapshot) undone.push_back(point);
    }
    co_await remove_points(std::move(undone));
  }
  SnapshotInput input{.message = std::move(command), .automatic = true};
  auto taken = co_await take_snapshot(sandbox, std::move(input));
  if (!taken) co_return fail(std::move(taken).error().context("keeping the state before it"));
  co_await remove_points(surplus_points(history(*sandbox), wall_clock_ms()));
  co_return Result<void>();
}

Task<Result<SnapshotPtr>> Manager::undo(SandboxPtr sandbox) {
  std::vector<SnapshotPtr> points = history(*sandbox);
  if (sandbox->record.untouched) {
    // It stands on one of them: the one before that is next.
    while (!points.empty() && points.back()->id != sandbox->record.snapshot) points.pop_back();
    if (!points.empty()) points.pop_back();
  }
  if (points.empty()) {
    std::string why =
        sandbox->record.spec.history
            ? "there is nothing more to undo"
            : "it keeps no history; it has to be asked for when it is created (history, --history)";
    co_return fail(ErrorCode::InvalidState, std::move(why));
  }
  SnapshotPtr point = points.back();
  ATOLL_CO_TRY(co_await restore(sandbox, point));
  co_return point;
}

}  // namespace atl::sandbox
