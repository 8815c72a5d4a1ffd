// How sandboxes come to be: found again at the start, or created.
#include "sandbox/manager.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "base/log.h"
#include "base/random_id.h"
#include "base/scope_exit.h"
#include "os/file.h"
#include "sandbox/due.h"

namespace atl::sandbox {

namespace asio = boost::asio;

Manager::Manager(asio::any_io_executor executor, SandboxBackend& backend, store::Store& store,
                 ManagerOptions options)
    : executor_(executor),
      backend_(backend),
      store_(store),
      options_(options),
      pool_(std::make_shared<Pool>(executor, backend, options.pool)),
      events_(executor, store),
      ledger_(store),
      lifetime_timer_(executor) {
  backend_.on_ended([this](EndedSandbox ended) { sandbox_ended(ended); });
  backend_.on_traffic([this](std::string id, std::vector<NetworkEntry> entries) {
    note_traffic(id, std::move(entries));
  });
}

Task<Result<void>> Manager::start() {
  ATOLL_CO_TRY(events_.load());
  ATOLL_CO_TRY(ledger_.load());
  ATOLL_CO_TRY(load_tombstones());
  ATOLL_CO_TRY(load_snapshots());
  ATOLL_CO_TRY(load_previews());
  ATOLL_CO_ASSIGN(auto records, store_.load_sandboxes());
  for (const auto& [id, text] : records) {
    auto record = decode_record(text, network_.seal);
    if (!record) co_return fail(std::move(record).error().context(id));
    ATOLL_CO_TRY(co_await adopt(std::move(*record)));
  }
  Known known{.sandbox = [this](const std::string& key) { return index_.contains(key); },
              .state = [this](const std::string& state) { return snapshots_.contains(state); },
              .memory = [this](const std::string& image) { return is_memory_known(image); }};
  ATOLL_CO_TRY(co_await backend_.reclaim(std::move(known)));
  auto self = shared_from_this();
  asio::co_spawn(
      executor_, [self]() -> Task<void> { return self->enforce_lifetimes(); }, asio::detached);
  co_return Result<void>();
}

Task<Result<void>> Manager::adopt(Record record) {
  auto sandbox = std::make_shared<Sandbox>(executor_, std::move(record));
  Record& known = sandbox->record;
  if (known.generation.empty()) known.generation = random_id("", 16);  // of the first schema
  known.since = on_this_boot(known, BootTime::now(), wall_clock_ms());
  sandbox->touch();
  index_.add(sandbox);
  bool had_processes = known.status != Status::Stopped && known.status != Status::Failed;
  bool on_disk = known.status == Status::Paused && !known.memory.empty();
  if (!had_processes || on_disk) co_return Result<void>();
  auto handle = co_await backend_.create(input_to_reattach(known));
  // It was being paused to disk: that has happened, or it has not.
  std::string image = std::exchange(known.memory, {});
  if (!handle && !image.empty() && backend_.has_memory(image)) {
    end_run(*sandbox, {EndCause::None, ""}, 0);
    known.status = Status::Paused;
    known.memory = std::move(image);
    co_return co_await save(*sandbox, "sandbox.paused");
  }
  if (!handle) {
    end_run(*sandbox, {EndCause::ServerAway, "it ended while the server was away"}, 0);
    co_return co_await save(*sandbox, "sandbox.stopped");
  }
  sandbox->handle = std::move(*handle);
  sandbox->source = Source::Reattached;
  if (auto applied = co_await apply_network(*sandbox, Missing::Accept); !applied) {
    log(LogLevel::Error, "a sandbox found again has no network",
        {{"sandbox", known.id}, {"error", applied.error().message()}});
  }
  if (known.status != Status::Provisioning) co_return Result<void>();
  // Its preparation, and the credential that came with the request, went with the old server.
  auto interrupted = std::exchange(sandbox->handle, nullptr);
  (void)co_await interrupted->dispose();
  end_run(*sandbox, {EndCause::Provisioning, "the server was restarted while it was prepared"}, 0);
  known.status = Status::Failed;
  co_return co_await save(*sandbox, "sandbox.failed");
}

Task<void> Manager::shut_down(bool end_all) {
  stopping_ = true;
  lifetime_timer_.cancel();
  events_.stop();
  co_await pool_->drain();
  std::vector<SandboxPtr> ending;
  if (end_all) ending = index_.list(Caller{.all_tenants = true});
  for (const SandboxPtr& sandbox : ending) {
    if (sandbox->handle == nullptr) continue;
    Ending why{EndCause::ServerStopped, "the server was stopped"};
    bool ephemeral = sandbox->record.spec.ephemeral;
    (void)(ephemeral ? co_await remove(sandbox, std::move(why))
                     : co_await stop(sandbox, std::move(why)));
  }
  co_await cleared_away();
}

Result<void> Manager::check(const Caller& caller, const Spec& spec) const {
  if (stopping_) return fail(ErrorCode::Unavailable, "the server is stopping");
  if (!spec.name.empty() && !is_valid_id(spec.name)) {
    return fail(Error(ErrorCode::InvalidArgument,
                      "a name is 1 to 64 of a-z, 0-9 and '-', and does not start with '-'")
                    .with_field("name"));
  }
  if (options_.max_sandboxes != 0 && index_.size() + under_way_ >= options_.max_sandboxes) {
    return fail(ErrorCode::ResourceExhausted, "this server holds its maximum of " +
                                                  std::to_string(options_.max_sandboxes) +
                                                  " sandboxes; delete some");
  }
  return auth::check(caller.quota, index_.used(caller.owner.key_id), demand(spec.limits));
}

Result<CreateInput> Manager::input_for(const std::string& id, const Owner& owner, const Spec& spec,
                                       const FoundTemplate& found) const {
  CreateInput input;
  input.template_key = found.key;
  input.workdir = spec.workdir.empty() ? found.settings.workdir : spec.workdir;
  input.session_key = id;
  input.env = spec.env;
  input.limits = spec.limits;
  input.profile = spec.profile;
  input.default_user = spec.user;
  input.awaited = true;
  input.ephemeral = spec.ephemeral;
  if (!spec.secrets.empty() || spec.all_secrets) {
    if (!secrets_) return fail(ErrorCode::Internal, "this server keeps no secrets");
    ATOLL_ASSIGN(auto values, secrets_(owner.tenant, spec));
    // A variable given for this sandbox alone wins over the tenant's secret of that name.
    input.env.insert(values.begin(), values.end());
  }
  input.gate = spec.network.mode != NetworkPolicy::Mode::DenyAll;
  add_network_env(spec.network, input);
  // And both win over the template's.
  input.env.insert(found.settings.env.begin(), found.settings.env.end());
  return input;
}

// With all that it was made with: its agent may not have been told yet.
CreateInput Manager::input_to_reattach(const Record& record) const {
  CreateInput input;
  auto whole = input_for(record.id, record.owner, record.spec, template_of(record));
  if (whole) input = std::move(*whole);
  input.awaited = false;
  input.keep_settings = !whole;  // a secret of its environment has been deleted since
  input.session_key = record.id;
  input.existing_metadata = record.backend_state;
  input.limits = record.spec.limits;
  input.frozen = record.status == Status::Paused;
  input.reattach_only = true;
  return input;
}

Task<Result<SandboxPtr>> Manager::create(Caller caller, Spec spec, std::optional<Origin> origin) {
  if (spec.idempotency_key.empty()) {
    co_return co_await build(std::move(caller), std::move(spec), std::move(origin));
  }
  std::pair key(caller.owner.tenant, spec.idempotency_key);
  for (;;) {
    if (auto known = index_.find_by_key(key.first, key.second)) co_return known;
    auto busy = keys_under_way_.find(key);
    if (busy == keys_under_way_.end()) break;
    auto turn = std::make_shared<async::OneShot<bool>>();
    busy->second.push_back(turn);
    co_await turn->wait();
  }
  keys_under_way_[key];
  auto built = co_await build(std::move(caller), std::move(spec), std::move(origin));
  auto waiters = std::move(keys_under_way_[key]);
  keys_under_way_.erase(key);
  for (auto& waiter : waiters) waiter->set(true);
  co_return built;
}

Task<Result<SandboxPtr>> Manager::build(Caller caller, Spec spec, std::optional<Origin> origin) {
  int64_t begin = os::monotonic_us();
  ATOLL_CO_TRY(check(caller, spec));
  ATOLL_CO_ASSIGN(FoundTemplate found, template_for(spec, origin));
  std::string template_key = found.key;
  std::string tenant = caller.owner.tenant, name = spec.name;
  if (!name.empty() && !index_.reserve_name(tenant, name)) {
    co_return fail(Error(ErrorCode::Conflict, "the name '" + name +
                                                  "' is in use; choose another or delete that "
                                                  "sandbox")
                       .with_field("name"));
  }
  bool kept = false;
  under_way_++;
  template_under_way_[template_key]++;
  // Others that are created meanwhile must count this one, too.
  Owner owner = caller.owner;
  Limits limits = spec.limits;
  index_.reserve(owner, limits);
  ScopeExit release([&] {
    under_way_--;
    index_.release(owner, limits);
    if (--template_under_way_[template_key] == 0) template_under_way_.erase(template_key);
    if (!kept && !name.empty()) index_.release_name(tenant, name);
  });
  bool poolable = spec.from_pool && !origin;
  std::shared_ptr<SandboxHandle> handle;
  if (poolable) handle = pool_->take(template_key);
  bool taken = handle != nullptr;
  Order order{std::move(caller.owner), std::move(spec), std::move(found)};
  auto built = taken ? co_await claim(std::move(handle), std::move(order))
                     : co_await build_cold(std::move(order), origin);
  if (!built) {
    if (taken) pool_->refill(template_key);
    co_return built;
  }
  SandboxPtr sandbox = std::move(*built);
  index_.add(sandbox);
  kept = true;
  // The template exists and somebody wants it: the next one should be there already.
  if (poolable) pool_->refill(template_key);
  sandbox->create_us = os::monotonic_us() - begin;
  if (sandbox->record.status == Status::Provisioning) start_provisioning(sandbox);
  co_return sandbox;
}

SandboxPtr Manager::describe(std::shared_ptr<SandboxHandle> handle, Order order,
                             Source source) const {
  Record record;
  record.id = handle->session().id();
  record.owner = std::move(order.owner);
  record.generation = random_id("", 16);
  record.status = order.spec.git.url.empty() ? Status::Running : Status::Provisioning;
  record.spec = std::move(order.spec);
  record.template_key = std::move(order.found.key);
  record.backend_state = handle->capture_state().metadata;
  record.created_at_ms = record.started_at_ms = wall_clock_ms();
  record.since = BootTime::now();
  auto sandbox = std::make_shared<Sandbox>(executor_, std::move(record));
  sandbox->handle = std::move(handle);
  sandbox->source = source;
  sandbox->touch();
  return sandbox;
}

// The row is written while the agent is told whose it is now. All it could refuse is a user it does
// not know, and every sandbox knows root: then nobody waits for it. It is told behind the answer,
// in front of whatever is asked of it next; a server that dies in between tells it when it comes
// back.
Task<Result<SandboxPtr>> Manager::claim(std::shared_ptr<SandboxHandle> handle, Order order) {
  bool other_limits = order.spec.limits != pool_->limits();
  auto input = input_for(handle->session().id(), order.owner, order.spec, order.found);
  if (!input) {
    (void)co_await handle->destroy();
    co_return fail(std::move(input).error());
  }
  SandboxPtr sandbox = describe(handle, std::move(order), Source::Pool);
  auto saved = save_meanwhile(sandbox);
  bool may_refuse = input->default_user != "root";
  handle->assign(std::move(*input));
  Result<void> configured;
  if (other_limits) configured = co_await handle->set_limits(sandbox->record.spec.limits);
  if (configured && may_refuse) configured = co_await handle->ready();
  if (configured) configured = co_await apply_network(*sandbox, Missing::Refuse);
  auto acknowledged = co_await acknowledge(sandbox, std::move(configured), saved);
  if (acknowledged && !may_refuse) make_ready_behind(std::move(handle));
  co_return acknowledged;
}

// One that has died meanwhile is reported as any that dies.
void Manager::make_ready_behind(std::shared_ptr<SandboxHandle> handle) {
  auto tell = [this, handle]() -> Task<void> {
    co_await asio::post(executor_, asio::use_awaitable);  // the answer goes out first
    (void)co_await handle->ready();
  };
  asio::co_spawn(executor_, tell, asio::detached);
}

Task<Result<SandboxPtr>> Manager::build_cold(Order order, std::optional<Origin> origin) {
  std::string id = random_id("sandbox-");
  ATOLL_CO_ASSIGN(CreateInput input, input_for(id, order.owner, order.spec, order.found));
  if (origin) {
    ATOLL_CO_TRY(co_await copy_files(*origin, id));
    input.existing = true;
    input.existing_metadata = origin->backend_state;
    input.existing_metadata.erase("slot");
  }
  bool revived = origin && !origin->memory.empty();
  auto handle = revived ? co_await backend_.revive(std::move(input), origin->memory)
                        : co_await backend_.create(std::move(input));
  if (!handle) {
    if (origin) (void)co_await backend_.discard(id);
    co_return fail(std::move(handle).error());
  }
  SandboxPtr sandbox = describe(*handle, std::move(order), Source::Cold);
  if (origin) sandbox->record.snapshot = origin->snapshot;
  auto saved = save_meanwhile(sandbox);
  Result<void> ready = co_await (*handle)->ready();
  if (ready && origin) ready = co_await renew_identity((*handle)->session());
  if (ready) ready = co_await apply_network(*sandbox, Missing::Refuse);
  co_return co_await acknowledge(sandbox, std::move(ready), saved);
}

Manager::Saved Manager::save_meanwhile(const SandboxPtr& sandbox) {
  auto saved = std::make_shared<async::OneShot<Result<void>>>();
  auto write_row = [this, sandbox, saved]() -> Task<void> {
    saved->set(co_await save(*sandbox, "sandbox.created"));
  };
  asio::co_spawn(executor_, write_row, asio::detached);
  return saved;
}

// A sandbox is its caller's once its agent is told and its row is written; else nothing of it
// stays.
Task<Result<SandboxPtr>> Manager::acknowledge(SandboxPtr sandbox, Result<void> configured,
                                              Saved saved) {
  Result<void> row = co_await saved->wait();
  if (configured && row) co_return sandbox;
  store::Write undo{.erase_sandbox = sandbox->record.id};
  undo.events.push_back(event_of(*sandbox, "sandbox.deleted"));
  if (row) (void)co_await write(std::move(undo));
  (void)co_await sandbox->handle->destroy();
  if (!configured) co_return fail(std::move(configured).error());
  co_return fail(std::move(row).error().context("recording the sandbox"));
}

}  // namespace atl::sandbox
