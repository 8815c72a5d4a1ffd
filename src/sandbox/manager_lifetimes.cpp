// What ends by itself: idle and expired sandboxes, those that stood stopped for too long, and old
// memories.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include "base/log.h"
#include "base/scope_exit.h"
#include "sandbox/due.h"
#include "sandbox/manager.h"

namespace atl::sandbox {

namespace asio = boost::asio;

// One clock for all of them: a sandbox without deadlines costs nothing here.
Task<void> Manager::enforce_lifetimes() {
  constexpr int kForgetEvery = 600;
  for (int round = 0; !stopping_; round++) {
    lifetime_timer_.expires_after(std::chrono::seconds(1));
    auto [error] = co_await lifetime_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error || stopping_) co_return;
    BootTime now = BootTime::now();
    std::vector<std::pair<SandboxPtr, Due>> ending;
    for (const auto& [id, sandbox] : index_.all()) {
      if (Due what = due(*sandbox, now); what != Due::Nothing) ending.emplace_back(sandbox, what);
    }
    // Each by itself: one that is being copied can be waited for without the others.
    for (const auto& [sandbox, what] : ending) {
      if (std::exchange(sandbox->expiring, true)) continue;
      asio::co_spawn(executor_, end_due(sandbox, what), asio::detached);
    }
    if (round % kForgetEvery == 0) co_await forget_old();
    co_await remove_expired_snapshots();
  }
}

bool Manager::still_due(const Sandbox& sandbox, const Ending& ending) {
  Due what = due(sandbox, BootTime::now());
  switch (ending.cause) {
    case EndCause::Lifetime:
      return what == Due::Lifetime;
    case EndCause::Idle:
      return what == Due::Idle;
    case EndCause::Shelved:
      return what == Due::Shelved;
    default:
      return true;
  }
}

Task<void> Manager::end_due(SandboxPtr sandbox, Due what) {
  auto self = shared_from_this();
  ScopeExit done([sandbox] { sandbox->expiring = false; });
  if (what == Due::Lifetime) co_return co_await end_lifetime(sandbox);
  bool idle = what == Due::Idle;
  Ending ending = idle ? Ending{EndCause::Idle, "it was idle"}
                       : Ending{EndCause::Shelved, "it stood stopped for as long as it may"};
  co_await expire(sandbox, std::move(ending), !idle || sandbox->record.spec.ephemeral);
}

Task<void> Manager::end_lifetime(SandboxPtr sandbox) {
  const Spec& spec = sandbox->record.spec;
  if (spec.at_lifetime == AtLifetime::Pause && sandbox->record.status == Status::Running) {
    auto paused = co_await set_paused(sandbox, true);
    Changes endless;
    endless.max_lifetime_s = 0;
    if (paused) paused = co_await update(sandbox, Caller(), std::move(endless));
    if (paused) co_return;
    log(LogLevel::Error, "cannot pause an expired sandbox",
        {{"sandbox", sandbox->record.id}, {"error", paused.error().message()}});
  }
  bool whole = spec.ephemeral || spec.at_lifetime == AtLifetime::Delete;
  co_await expire(sandbox, {EndCause::Lifetime, "its lifetime was over"}, whole);
}

Task<void> Manager::expire(SandboxPtr sandbox, Ending ending, bool whole) {
  auto done = whole ? co_await remove(sandbox, std::move(ending))
                    : co_await stop(sandbox, std::move(ending));
  if (!done) {
    log(LogLevel::Error, "cannot end an expired sandbox",
        {{"sandbox", sandbox->record.id}, {"error", done.error().message()}});
  }
}

Result<void> Manager::load_tombstones() {
  ATOLL_ASSIGN(auto documents, store_.load_documents("ended"));
  for (const store::Document& document : documents) {
    boost::system::error_code bad;
    auto parsed = boost::json::parse(document.body, bad);
    if (bad || !parsed.is_object()) continue;  // worth nothing more than a message
    const auto& object = parsed.get_object();
    Tombstone stone{.tenant = document.tenant};
    if (const auto* reason = object.if_contains("reason"); reason && reason->is_string()) {
      stone.reason = std::string(reason->get_string());
    }
    if (const auto* at = object.if_contains("endedAtMs"); at && at->is_int64()) {
      stone.ended_at_ms = at->get_int64();
    }
    tombstones_[document.id] = std::move(stone);
  }
  return {};
}

Task<void> Manager::forget_old() {
  co_await forget_expired_previews();
  int64_t limit = wall_clock_ms() - options_.keep_events_ms;
  store::Write change;
  for (auto it = tombstones_.begin(); it != tombstones_.end();) {
    if (it->second.ended_at_ms >= limit) {
      ++it;
      continue;
    }
    change.erase_documents.push_back(
        {.kind = "ended", .tenant = it->second.tenant, .id = it->first, .body = {}});
    it = tombstones_.erase(it);
  }
  auto forgotten = co_await store_.write(std::move(change));
  if (forgotten) forgotten = co_await events_.forget_before(limit);
  if (!forgotten) {
    log(LogLevel::Warning, "cannot forget old events", {{"error", forgotten.error().message()}});
  }
}

}  // namespace atl::sandbox
