// How sandboxes change and end.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/scope_exit.h"
#include "sandbox/manager.h"

namespace atl::sandbox {

namespace asio = boost::asio;

static const char* kGone = "the sandbox has been deleted";
static constexpr int64_t kTellActivityMs = 10'000;
static constexpr int kClearRounds = 6000;  // half a minute

Event Manager::event_of(const Sandbox& sandbox, std::string type) {
  const Record& record = sandbox.record;
  boost::json::object data{{"sandboxId", record.id}, {"status", to_string(record.status)}};
  if (!record.spec.name.empty()) data["name"] = record.spec.name;
  if (record.cause != EndCause::None) {
    data["cause"] = to_string(record.cause);
    data["reason"] = record.reason;
  }
  return events_.make(record.owner.tenant, record.id, std::move(type),
                      boost::json::serialize(data));
}

Task<Result<void>> Manager::write(store::Write write) {
  auto events = write.events;
  ATOLL_CO_TRY(co_await store_.write(std::move(write)));
  for (const Event& event : events) events_.announce(event);
  co_return Result<void>();
}

Task<Result<void>> Manager::save(Sandbox& sandbox, std::string event) {
  store::Write change;
  ATOLL_CO_TRY(put(sandbox.record, change));
  change.events.push_back(event_of(sandbox, std::move(event)));
  co_return co_await write(std::move(change));
}

Result<void> Manager::put(const Record& record, store::Write& change) const {
  ATOLL_ASSIGN(std::string body, encode_record(record, network_.seal));
  change.put_sandbox = {record.id, std::move(body)};
  return {};
}

// What cannot be recorded has not happened.
Task<Result<void>> Manager::save_or_restore(Sandbox& sandbox, Record before, std::string event) {
  auto saved = co_await save(sandbox, std::move(event));
  if (!saved) sandbox.record = std::move(before);
  co_return saved;
}

void Manager::end_run(Sandbox& sandbox, Ending ending, uint64_t cpu_us) {
  Record& record = sandbox.record;
  record.metered = metered_until(record, cpu_us, BootTime::now());
  record.status = Status::Stopped;
  record.cause = ending.cause;
  record.reason = std::move(ending.reason);
  record.ended_at_ms = wall_clock_ms();
  record.since = BootTime::now();
}

// What the present run has used is read while its control groups are still there.
Task<void> Manager::settle_run(Sandbox& sandbox, Ending ending) {
  uint64_t cpu_us = 0;
  if (auto handle = sandbox.handle) {
    auto used = co_await handle->usage();
    if (used) cpu_us = used->cpu_us;
  }
  end_run(sandbox, std::move(ending), cpu_us);
}

Task<Result<void>> Manager::remove(SandboxPtr sandbox, Ending ending) {
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted) co_return Result<void>();  // a second delete finds it done
  if (!still_due(*sandbox, ending)) co_return Result<void>();
  Record& record = sandbox->record;
  Record before = record;
  record.cause = ending.cause;
  record.reason = std::move(ending.reason);
  Tombstone stone{
      .tenant = record.owner.tenant, .reason = record.reason, .ended_at_ms = wall_clock_ms()};
  boost::json::object grave{{"reason", stone.reason}, {"endedAtMs", stone.ended_at_ms}};
  // The row goes first: should we die here, the next start clears away what has no row.
  store::Write change{.erase_sandbox = record.id};
  change.events.push_back(event_of(*sandbox, "sandbox.deleted"));
  change.put_documents.push_back({.kind = "ended",
                                  .tenant = stone.tenant,
                                  .id = record.id,
                                  .body = boost::json::serialize(grave)});
  erase_previews(record.id, change);
  auto written = co_await write(std::move(change));
  if (!written) {
    record = std::move(before);
    co_return written;
  }
  failpoint("delete.written");
  sandbox->deleted = true;
  index_.remove(*sandbox);
  forget_previews(record.id);
  tombstones_[record.id] = std::move(stone);
  // Nothing can bring it back now, so the caller need not wait for the rest.
  auto self = shared_from_this();
  asio::co_spawn(
      executor_, [self, sandbox]() -> Task<void> { return self->clear_away(sandbox); },
      asio::detached);
  co_return Result<void>();
}

// What was deleted must be gone before the launcher is.
Task<void> Manager::cleared_away() {
  asio::steady_timer timer(executor_);
  for (int round = 0; clearing_ > 0 && round < kClearRounds; round++) {
    timer.expires_after(std::chrono::milliseconds(5));
    (void)co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

// What it used is read and booked first; a crash right here loses the usage of its last run.
Task<void> Manager::clear_away(SandboxPtr sandbox) {
  clearing_++;
  ScopeExit done([this] { clearing_--; });
  if (sandbox->handle != nullptr) {
    Ending ending{sandbox->record.cause, sandbox->record.reason};
    co_await settle_run(*sandbox, std::move(ending));
  }
  store::Write booked;
  booked.put_documents.push_back(ledger_.add(sandbox->record));
  (void)co_await write(std::move(booked));
  co_await remove_points(history(*sandbox));
  co_await drop_paused_memory(*sandbox);
  auto handle = std::exchange(sandbox->handle, nullptr);
  Result<void> gone = handle != nullptr ? co_await handle->destroy()
                                        : co_await backend_.discard(sandbox->record.id);
  if (!gone) {
    log(LogLevel::Error, "cannot clear away a deleted sandbox",
        {{"sandbox", sandbox->record.id}, {"error", gone.error().message()}});
  }
}

Task<Result<void>> Manager::stop(SandboxPtr sandbox, Ending ending) {
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted) co_return fail(ErrorCode::NotFound, kGone);
  if (!still_due(*sandbox, ending)) co_return Result<void>();
  if (sandbox->handle != nullptr) co_return co_await stop_locked(*sandbox, std::move(ending));
  if (sandbox->record.memory.empty()) co_return Result<void>();
  // Paused to disk: what was kept of its processes goes.
  Record before = sandbox->record;
  sandbox->record.status = Status::Stopped;
  sandbox->record.cause = ending.cause;
  sandbox->record.reason = std::move(ending.reason);
  std::string image = std::exchange(sandbox->record.memory, {});
  sandbox->record.memory_bytes = 0;
  ATOLL_CO_TRY(co_await save_or_restore(*sandbox, std::move(before), "sandbox.stopped"));
  (void)co_await backend_.forget_memory(std::move(image));
  co_return Result<void>();
}

Task<Result<void>> Manager::stop_locked(Sandbox& sandbox, Ending ending) {
  Record before = sandbox.record;
  bool paused = before.status == Status::Paused;
  co_await settle_run(sandbox, std::move(ending));
  ATOLL_CO_TRY(co_await save_or_restore(sandbox, std::move(before), "sandbox.stopped"));
  auto handle = std::exchange(sandbox.handle, nullptr);
  // Frozen processes cannot be killed on every kernel; thawing first is always right.
  if (paused) (void)co_await handle->set_frozen(false);
  co_return co_await handle->dispose();
}

Task<Result<void>> Manager::resume(SandboxPtr sandbox) {
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted) co_return fail(ErrorCode::NotFound, kGone);
  co_return co_await wake(*sandbox);
}

Task<Result<void>> Manager::wake(Sandbox& sandbox) {
  Record& record = sandbox.record;
  if (record.status == Status::Running || record.status == Status::Provisioning) {
    co_return Result<void>();
  }
  if (!record.memory.empty()) {
    co_return co_await revive_locked(sandbox, record.memory, "sandbox.resumed");
  }
  Record before = record;
  bool paused = record.status == Status::Paused;
  if (paused) {
    ATOLL_CO_TRY(co_await sandbox.handle->set_frozen(false));
  } else {
    ATOLL_CO_ASSIGN(CreateInput input,
                    input_for(record.id, record.owner, record.spec, template_of(record)));
    input.existing = true;
    input.existing_metadata = record.backend_state;
    ATOLL_CO_ASSIGN(auto handle, co_await backend_.create(std::move(input)));
    auto ready = co_await handle->ready();
    if (!ready) {
      (void)co_await handle->dispose();
      co_return ready;
    }
    sandbox.handle = std::move(handle);
    sandbox.trusted_ca.clear();
    auto applied = co_await apply_network(sandbox, Missing::Accept);
    if (!applied) {
      auto unwanted = std::exchange(sandbox.handle, nullptr);
      (void)co_await unwanted->dispose();
      co_return applied;
    }
    sandbox.source = Source::Cold;
    record.started_at_ms = wall_clock_ms();
    record.ended_at_ms = 0;
    record.since = BootTime::now();
  }
  record.status = Status::Running;
  record.cause = EndCause::None;
  record.reason.clear();
  record.backend_state = sandbox.handle->capture_state().metadata;
  // What was changed meanwhile could not be told to anything inside.
  if (paused) (void)co_await apply_network(sandbox, Missing::Accept);
  sandbox.touch();
  auto saved = co_await save_or_restore(sandbox, std::move(before), "sandbox.resumed");
  if (!saved && paused) (void)co_await sandbox.handle->set_frozen(true);
  if (!saved && !paused) {
    auto unwanted = std::exchange(sandbox.handle, nullptr);
    (void)co_await unwanted->dispose();
  }
  co_return saved;
}

Task<Result<void>> Manager::set_paused(SandboxPtr sandbox, bool paused) {
  if (!paused) co_return co_await resume(std::move(sandbox));
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted) co_return fail(ErrorCode::NotFound, kGone);
  if (sandbox->record.status == Status::Paused) co_return Result<void>();
  if (sandbox->record.status != Status::Running || sandbox->handle == nullptr) {
    co_return fail(ErrorCode::InvalidState, "only a running sandbox can be paused; start it first");
  }
  auto handle = sandbox->handle;
  ATOLL_CO_TRY(co_await handle->set_frozen(true));
  Record before = sandbox->record;
  sandbox->record.status = Status::Paused;
  auto saved = co_await save_or_restore(*sandbox, std::move(before), "sandbox.paused");
  if (!saved) (void)co_await handle->set_frozen(false);
  co_return saved;
}

Task<Result<void>> Manager::update(SandboxPtr sandbox, const Caller& caller, Changes changes) {
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted) co_return fail(ErrorCode::NotFound, kGone);
  Record old = sandbox->record;
  Spec& spec = sandbox->record.spec;
  if (changes.limits) {
    auto used = index_.used(sandbox->record.owner.key_id);
    auto before = demand(spec.limits), after = demand(*changes.limits);
    auto grown = [](auto now, auto then) { return now > then ? now - then : decltype(now){0}; };
    auth::Quota more{.sandboxes = 0,
                     .cpu_millis = grown(after.cpu_millis, before.cpu_millis),
                     .memory_bytes = grown(after.memory_bytes, before.memory_bytes),
                     .disk_bytes = grown(after.disk_bytes, before.disk_bytes)};
    if (caller.owner.key_id == sandbox->record.owner.key_id) {
      ATOLL_CO_TRY(auth::check(caller.quota, used, more));
    }
    if (sandbox->handle != nullptr) {
      ATOLL_CO_TRY(co_await sandbox->handle->set_limits(*changes.limits));
    }
    index_.change_limits(*sandbox, *changes.limits);
  }
  if (changes.idle_timeout_s) spec.idle_timeout_s = *changes.idle_timeout_s;
  if (changes.max_lifetime_s) spec.max_lifetime_s = *changes.max_lifetime_s;
  if (changes.delete_after_stopped_s) {
    spec.delete_after_stopped_s = *changes.delete_after_stopped_s;
  }
  if (changes.metadata) spec.metadata = *changes.metadata;
  sandbox->touch();
  auto saved = co_await save(*sandbox, "sandbox.updated");
  if (saved) co_return saved;
  if (changes.limits) {
    index_.change_limits(*sandbox, old.spec.limits);
    if (sandbox->handle != nullptr) {
      (void)co_await sandbox->handle->set_limits(old.spec.limits);
    }
  }
  sandbox->record = std::move(old);
  co_return saved;
}

const Tombstone* Manager::tombstone(const Caller& caller, const std::string& id) const {
  auto stone = tombstones_.find(id);
  if (stone == tombstones_.end()) return nullptr;
  bool visible = caller.all_tenants || stone->second.tenant == caller.owner.tenant;
  return visible ? &stone->second : nullptr;
}

Result<SandboxPtr> Manager::find(const Caller& caller, const std::string& id_or_name) const {
  if (auto found = index_.find(caller, id_or_name)) return found;
  if (const Tombstone* stone = tombstone(caller, id_or_name)) {
    return fail(ErrorCode::NotFound,
                "the sandbox '" + id_or_name + "' was deleted: " + stone->reason);
  }
  return fail(ErrorCode::NotFound,
              "no sandbox '" + id_or_name + "'; list them to see what there is");
}

Result<std::string> Manager::known_id(const Caller& caller, const std::string& id_or_name) const {
  if (tombstone(caller, id_or_name) != nullptr) return id_or_name;
  ATOLL_ASSIGN(SandboxPtr sandbox, find(caller, id_or_name));
  return sandbox->record.id;
}

static std::string remedy(Status status) {
  if (status == Status::Paused) return "; unpause it first";
  if (status == Status::Provisioning) return "; wait until it is running";
  return "; start it first";
}

Task<Result<std::shared_ptr<SandboxSession>>> Manager::session(SandboxPtr sandbox) {
  const Record& record = sandbox->record;
  bool asleep = (record.status == Status::Stopped && record.cause == EndCause::Idle) ||
                (record.status == Status::Paused && !record.memory.empty());
  if (asleep && record.spec.auto_resume) ATOLL_CO_TRY(co_await resume(sandbox));
  if (record.status == Status::Running && sandbox->handle != nullptr) {
    co_return std::shared_ptr<SandboxSession>(sandbox->handle, &sandbox->handle->session());
  }
  std::string what = "the sandbox is " + std::string(to_string(record.status));
  if (!record.reason.empty()) what += " (" + record.reason + ")";
  co_return fail(ErrorCode::InvalidState, what + remedy(record.status));
}

void Manager::note_activity(Sandbox& sandbox) {
  sandbox.touch();
  int64_t now = sandbox.active.ms;
  if (now - sandbox.activity_told_ms < kTellActivityMs || sandbox.deleted) return;
  sandbox.activity_told_ms = now;
  auto self = shared_from_this();
  // Numbered when it is written, not before: numbers must reach the database in their order.
  auto tell = [self, id = sandbox.record.id]() -> Task<void> {
    SandboxPtr active = self->index_.find(id);
    if (active == nullptr) co_return;
    store::Write change;
    change.events.push_back(self->event_of(*active, "sandbox.activity"));
    (void)co_await self->write(std::move(change));
  };
  asio::co_spawn(executor_, tell, asio::detached);
}

Task<Metered> Manager::metered(SandboxPtr sandbox) {
  uint64_t cpu_us = 0;
  if (auto handle = sandbox->handle) {
    auto used = co_await handle->usage();
    if (used) cpu_us = used->cpu_us;
  }
  co_return metered_until(sandbox->record, cpu_us, BootTime::now());
}

void Manager::sandbox_ended(const EndedSandbox& ended) {
  pool_->forget(ended.session_key);
  SandboxPtr sandbox = index_.find(ended.session_key);
  if (sandbox == nullptr) return;
  asio::co_spawn(executor_, record_end(sandbox, sandbox->handle, ended.out_of_memory),
                 asio::detached);
}

// In its turn like every change of state: a stop or a delete that is under way has the last word.
Task<void> Manager::record_end(SandboxPtr sandbox, std::shared_ptr<SandboxHandle> ended,
                               bool out_of_memory) {
  auto self = shared_from_this();
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted || ended == nullptr || sandbox->handle != ended) co_return;
  sandbox->handle = nullptr;
  Ending ending{EndCause::AgentDied, "its agent was killed"};
  if (out_of_memory) {
    ending = {EndCause::OutOfMemory,
              "it ran out of memory and its agent was killed; give it more memory"};
  }
  end_run(*sandbox, std::move(ending), 0);
  sandbox->record.status = Status::Failed;
  auto saved = co_await save(*sandbox, "sandbox.failed");
  if (!saved) log(LogLevel::Error, "cannot record an end", {{"error", saved.error().message()}});
}

}  // namespace atl::sandbox
