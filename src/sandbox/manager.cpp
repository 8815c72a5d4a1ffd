#include "sandbox/manager.h"

#include <time.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "base/log.h"
#include "base/random_id.h"
#include "base/scope_exit.h"
#include "os/file.h"

namespace atl::sandbox {

namespace asio = boost::asio;

int64_t wall_clock_ms() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

Manager::Manager(asio::any_io_executor executor, SandboxBackend& backend, store::Store& store,
                 PoolOptions pool)
    : executor_(executor),
      backend_(backend),
      store_(store),
      pool_(std::make_shared<Pool>(executor, backend, pool)),
      lifetime_timer_(executor) {
  backend_.on_ended([this](EndedSandbox ended) { sandbox_ended(ended); });
}

Task<Result<void>> Manager::start() {
  ATOLL_CO_ASSIGN(auto records, store_.load_sandboxes());
  for (const auto& [id, text] : records) {
    auto record = decode_record(text);
    if (!record) co_return fail(std::move(record).error().context(id));
    ATOLL_CO_TRY(co_await adopt(std::move(*record)));
  }
  auto known = [this](const std::string& key) { return by_id_.contains(key); };
  ATOLL_CO_TRY(co_await backend_.reclaim(known));
  auto self = shared_from_this();
  asio::co_spawn(
      executor_, [self]() -> Task<void> { return self->enforce_lifetimes(); }, asio::detached);
  co_return Result<void>();
}

Task<Result<void>> Manager::adopt(Record record) {
  auto sandbox = std::make_shared<Sandbox>(executor_, std::move(record));
  Record& known = sandbox->record;
  sandbox->last_activity_ms = wall_clock_ms();
  if (known.status == Status::Running || known.status == Status::Paused) {
    CreateInput input = input_for(known.id, known.spec);
    input.existing_metadata = known.backend_state;
    input.reattach_only = true;
    input.frozen = known.status == Status::Paused;
    auto handle = co_await backend_.create(std::move(input));
    if (handle) {
      sandbox->handle = std::move(*handle);
      sandbox->source = Source::Reattached;
    } else {
      known.status = Status::Stopped;
      known.reason = "it ended while the server was away";
      ATOLL_CO_TRY(co_await save(*sandbox));
    }
  }
  by_id_[known.id] = sandbox;
  if (!known.spec.name.empty()) id_by_name_[known.spec.name] = known.id;
  if (!known.spec.idempotency_key.empty()) id_by_key_[known.spec.idempotency_key] = known.id;
  co_return Result<void>();
}

Task<void> Manager::shut_down(bool end_all) {
  stopping_ = true;
  lifetime_timer_.cancel();
  co_await pool_->drain();
  if (!end_all) co_return;
  for (const SandboxPtr& sandbox : list()) {
    if (sandbox->handle == nullptr) continue;
    if (sandbox->record.spec.ephemeral) {
      (void)co_await remove(sandbox);
    } else {
      (void)co_await stop(sandbox, "the server was stopped");
    }
  }
}

Result<void> Manager::check(const Spec& spec) const {
  if (stopping_) return fail(ErrorCode::Unavailable, "the server is stopping");
  if (spec.name.empty()) return {};
  if (!is_valid_id(spec.name)) {
    return fail(Error(ErrorCode::InvalidArgument,
                      "a name is 1 to 64 of a-z, 0-9 and '-', and does not start with '-'")
                    .with_field("name"));
  }
  if (id_by_name_.contains(spec.name) || by_id_.contains(spec.name)) {
    return fail(Error(ErrorCode::Conflict, "the name '" + spec.name +
                                               "' is in use; choose another or delete that sandbox")
                    .with_field("name"));
  }
  return {};
}

CreateInput Manager::input_for(const std::string& id, const Spec& spec) const {
  CreateInput input;
  input.template_key = spec.template_name;
  input.session_key = id;
  input.env = spec.env;
  input.limits = spec.limits;
  input.profile = spec.profile;
  input.default_user = spec.user;
  input.ephemeral = spec.ephemeral;
  return input;
}

Task<Result<SandboxPtr>> Manager::create(Spec spec) {
  std::string key = spec.idempotency_key;
  if (key.empty()) co_return co_await build(std::move(spec));
  for (;;) {
    auto known = id_by_key_.find(key);
    if (known != id_by_key_.end()) co_return by_id_.at(known->second);
    auto busy = keys_under_way_.find(key);
    if (busy == keys_under_way_.end()) break;
    auto turn = std::make_shared<async::OneShot<bool>>();
    busy->second.push_back(turn);
    co_await turn->wait();
  }
  keys_under_way_[key];
  auto built = co_await build(std::move(spec));
  if (built) id_by_key_[key] = (*built)->record.id;
  auto waiters = std::move(keys_under_way_[key]);
  keys_under_way_.erase(key);
  for (auto& waiter : waiters) waiter->set(true);
  co_return built;
}

Task<Result<SandboxPtr>> Manager::build(Spec spec) {
  int64_t begin = os::monotonic_us();
  ATOLL_CO_TRY(check(spec));
  std::string name = spec.name;
  std::string template_name = spec.template_name;
  if (!name.empty()) id_by_name_[name] = "";  // taken from here on
  bool kept = false;
  ScopeExit release([&] {
    if (!kept && !name.empty()) id_by_name_.erase(name);
  });
  bool poolable = spec.from_pool && spec.limits.disk_bytes == pool_->limits().disk_bytes;
  std::shared_ptr<SandboxHandle> handle;
  if (poolable) handle = pool_->take(template_name);
  bool taken = handle != nullptr;
  auto built = handle != nullptr ? co_await claim(std::move(handle), std::move(spec))
                                 : co_await build_cold(std::move(spec));
  if (!built) {
    if (taken) pool_->refill(template_name);
    co_return built;
  }
  SandboxPtr sandbox = std::move(*built);
  by_id_[sandbox->record.id] = sandbox;
  if (!name.empty()) id_by_name_[name] = sandbox->record.id;
  kept = true;
  // The template exists and somebody wants it: the next one should be there already.
  if (poolable) pool_->refill(template_name);
  sandbox->create_us = os::monotonic_us() - begin;
  co_return sandbox;
}

SandboxPtr Manager::describe(std::shared_ptr<SandboxHandle> handle, Spec spec,
                             Source source) const {
  Record record;
  record.id = handle->session().id();
  record.spec = std::move(spec);
  record.backend_state = handle->capture_state().metadata;
  record.created_at_ms = record.started_at_ms = wall_clock_ms();
  auto sandbox = std::make_shared<Sandbox>(executor_, std::move(record));
  sandbox->handle = std::move(handle);
  sandbox->source = source;
  sandbox->last_activity_ms = sandbox->record.created_at_ms;
  return sandbox;
}

// The row is written while the agent is told whose it is now.
Task<Result<SandboxPtr>> Manager::claim(std::shared_ptr<SandboxHandle> handle, Spec spec) {
  bool other_limits = spec.limits != pool_->limits();
  CreateInput input = input_for(handle->session().id(), spec);
  SandboxPtr sandbox = describe(handle, std::move(spec), Source::Pool);
  auto saved = save_meanwhile(sandbox);
  Result<void> configured;
  if (other_limits) configured = co_await handle->set_limits(sandbox->record.spec.limits);
  if (configured) configured = co_await handle->configure(std::move(input));
  co_return co_await acknowledge(sandbox, std::move(configured), saved);
}

Task<Result<SandboxPtr>> Manager::build_cold(Spec spec) {
  auto handle = co_await backend_.create(input_for(random_id("sandbox-"), spec));
  if (!handle) co_return fail(std::move(handle).error());
  SandboxPtr sandbox = describe(*handle, std::move(spec), Source::Cold);
  auto saved = save_meanwhile(sandbox);
  Result<void> ready = co_await (*handle)->ready();
  co_return co_await acknowledge(sandbox, std::move(ready), saved);
}

Manager::Saved Manager::save_meanwhile(const SandboxPtr& sandbox) {
  auto saved = std::make_shared<async::OneShot<Result<void>>>();
  auto write_row = [this, sandbox, saved]() -> Task<void> { saved->set(co_await save(*sandbox)); };
  asio::co_spawn(executor_, write_row, asio::detached);
  return saved;
}

// A sandbox is its caller's once its agent is told and its row is written; else nothing of it
// stays.
Task<Result<SandboxPtr>> Manager::acknowledge(SandboxPtr sandbox, Result<void> configured,
                                              Saved saved) {
  Result<void> row = co_await saved->wait();
  if (configured && row) co_return sandbox;
  if (row) (void)co_await store_.erase_sandbox(sandbox->record.id);
  (void)co_await sandbox->handle->destroy();
  if (!configured) co_return fail(std::move(configured).error());
  co_return fail(std::move(row).error().context("recording the sandbox"));
}

Task<Result<void>> Manager::save(const Sandbox& sandbox) {
  return store_.put_sandbox(sandbox.record.id, encode_record(sandbox.record));
}

Task<Result<void>> Manager::remove(SandboxPtr sandbox) {
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted) co_return Result<void>();  // a second delete finds it done
  const Record& record = sandbox->record;
  // The row goes first: should we die here, the next start clears away what has no row.
  ATOLL_CO_TRY(co_await store_.erase_sandbox(record.id));
  sandbox->deleted = true;
  by_id_.erase(record.id);
  if (!record.spec.name.empty()) id_by_name_.erase(record.spec.name);
  if (!record.spec.idempotency_key.empty()) id_by_key_.erase(record.spec.idempotency_key);
  // Nothing can bring it back now, so the caller need not wait for the rest.
  auto self = shared_from_this();
  auto clear_away = [self, sandbox]() -> Task<void> {
    auto handle = std::exchange(sandbox->handle, nullptr);
    Result<void> gone = handle != nullptr ? co_await handle->destroy()
                                          : co_await self->backend_.discard(sandbox->record.id);
    if (!gone) {
      log(LogLevel::Error, "cannot clear away a deleted sandbox",
          {{"sandbox", sandbox->record.id}, {"error", gone.error().message()}});
    }
  };
  asio::co_spawn(executor_, clear_away, asio::detached);
  co_return Result<void>();
}

Task<Result<void>> Manager::stop(SandboxPtr sandbox, std::string reason) {
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted) co_return fail(ErrorCode::NotFound, "the sandbox has been deleted");
  if (sandbox->handle == nullptr) co_return Result<void>();
  // Frozen processes cannot be killed on every kernel; thawing first is always right.
  if (sandbox->record.status == Status::Paused)
    ATOLL_CO_TRY(co_await sandbox->handle->set_frozen(false));
  sandbox->record.status = Status::Stopped;
  sandbox->record.reason = std::move(reason);
  ATOLL_CO_TRY(co_await save(*sandbox));
  auto handle = std::exchange(sandbox->handle, nullptr);
  co_return co_await handle->dispose();
}

Task<Result<void>> Manager::resume(SandboxPtr sandbox) {
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted) co_return fail(ErrorCode::NotFound, "the sandbox has been deleted");
  if (sandbox->record.status == Status::Running) co_return Result<void>();
  if (sandbox->record.status == Status::Paused) {
    ATOLL_CO_TRY(co_await sandbox->handle->set_frozen(false));
  } else {
    CreateInput input = input_for(sandbox->record.id, sandbox->record.spec);
    ATOLL_CO_ASSIGN(auto handle, co_await backend_.create(std::move(input)));
    auto ready = co_await handle->ready();
    if (!ready) {
      (void)co_await handle->dispose();
      co_return ready;
    }
    sandbox->handle = std::move(handle);
    sandbox->source = Source::Cold;
  }
  sandbox->record.status = Status::Running;
  sandbox->record.reason.clear();
  sandbox->record.backend_state = sandbox->handle->capture_state().metadata;
  sandbox->record.started_at_ms = sandbox->last_activity_ms = wall_clock_ms();
  co_return co_await save(*sandbox);
}

Task<Result<void>> Manager::set_paused(SandboxPtr sandbox, bool paused) {
  if (!paused) co_return co_await resume(std::move(sandbox));
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->handle == nullptr) {
    co_return fail(ErrorCode::InvalidState, "only a running sandbox can be paused; start it first");
  }
  ATOLL_CO_TRY(co_await sandbox->handle->set_frozen(true));
  sandbox->record.status = Status::Paused;
  sandbox->record.reason.clear();
  co_return co_await save(*sandbox);
}

Task<Result<void>> Manager::update(SandboxPtr sandbox, Changes changes) {
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted) co_return fail(ErrorCode::NotFound, "the sandbox has been deleted");
  Spec& spec = sandbox->record.spec;
  if (changes.limits) {
    if (sandbox->handle != nullptr) {
      ATOLL_CO_TRY(co_await sandbox->handle->set_limits(*changes.limits));
    }
    spec.limits = *changes.limits;
  }
  if (changes.idle_timeout_s) spec.idle_timeout_s = *changes.idle_timeout_s;
  if (changes.max_lifetime_s) spec.max_lifetime_s = *changes.max_lifetime_s;
  if (changes.metadata) spec.metadata = *changes.metadata;
  sandbox->last_activity_ms = wall_clock_ms();
  co_return co_await save(*sandbox);
}

Result<SandboxPtr> Manager::find(const std::string& id_or_name) const {
  auto named = id_by_name_.find(id_or_name);
  auto it = by_id_.find(named == id_by_name_.end() ? id_or_name : named->second);
  if (it == by_id_.end()) {
    return fail(ErrorCode::NotFound,
                "no sandbox '" + id_or_name + "'; list them to see what there is");
  }
  return it->second;
}

std::vector<SandboxPtr> Manager::list() const {
  std::vector<SandboxPtr> all;
  all.reserve(by_id_.size());
  for (const auto& [id, sandbox] : by_id_) all.push_back(sandbox);
  std::sort(all.begin(), all.end(), [](const SandboxPtr& a, const SandboxPtr& b) {
    return a->record.created_at_ms < b->record.created_at_ms;
  });
  return all;
}

Result<std::shared_ptr<SandboxSession>> Manager::session(Sandbox& sandbox) const {
  if (sandbox.record.status == Status::Running && sandbox.handle != nullptr) {
    sandbox.last_activity_ms = wall_clock_ms();
    return std::shared_ptr<SandboxSession>(sandbox.handle, &sandbox.handle->session());
  }
  std::string what = "the sandbox is " + std::string(to_string(sandbox.record.status));
  if (!sandbox.record.reason.empty()) what += " (" + sandbox.record.reason + ")";
  bool paused = sandbox.record.status == Status::Paused;
  return fail(ErrorCode::InvalidState, what + (paused ? "; unpause it first" : "; start it first"));
}

void Manager::sandbox_ended(const EndedSandbox& ended) {
  pool_->forget(ended.session_key);
  auto it = by_id_.find(ended.session_key);
  if (it == by_id_.end()) return;
  SandboxPtr sandbox = it->second;
  sandbox->handle = nullptr;
  sandbox->record.status = Status::Failed;
  sandbox->record.reason =
      ended.out_of_memory ? "it ran out of memory and its agent was killed; give it more memory"
                          : "its agent was killed";
  auto self = shared_from_this();
  auto record_it = [self, sandbox]() -> Task<void> {
    auto saved = co_await self->save(*sandbox);
    if (!saved) log(LogLevel::Error, "cannot record an end", {{"error", saved.error().message()}});
  };
  asio::co_spawn(executor_, record_it, asio::detached);
}

// One clock for all of them: a sandbox without deadlines costs nothing here.
Task<void> Manager::enforce_lifetimes() {
  while (!stopping_) {
    lifetime_timer_.expires_after(std::chrono::seconds(1));
    auto [error] = co_await lifetime_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error || stopping_) co_return;
    int64_t now = wall_clock_ms();
    for (const SandboxPtr& sandbox : list()) {
      const Spec& spec = sandbox->record.spec;
      if (sandbox->handle == nullptr) continue;
      bool expired = spec.max_lifetime_s != 0 &&
                     now > sandbox->record.started_at_ms + int64_t{spec.max_lifetime_s} * 1000;
      bool idle = spec.idle_timeout_s != 0 && sandbox->in_use == 0 &&
                  now > sandbox->last_activity_ms + int64_t{spec.idle_timeout_s} * 1000;
      if (expired)
        co_await expire(sandbox, "its lifetime was over");
      else if (idle)
        co_await expire(sandbox, "it was idle");
    }
  }
}

Task<void> Manager::expire(SandboxPtr sandbox, std::string reason) {
  auto done = sandbox->record.spec.ephemeral ? co_await remove(sandbox)
                                             : co_await stop(sandbox, std::move(reason));
  if (!done) {
    log(LogLevel::Error, "cannot end an expired sandbox",
        {{"sandbox", sandbox->record.id}, {"error", done.error().message()}});
  }
}

}  // namespace atl::sandbox
