// States of sandboxes that are kept, returned to and branched from.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/random_id.h"
#include "sandbox/manager.h"

namespace atl::sandbox {

namespace asio = boost::asio;

static constexpr const char* kKind = "snapshot";

static store::Document document_of(const Snapshot& snapshot, std::string body) {
  return {.kind = kKind,
          .tenant = snapshot.source.owner.tenant,
          .id = snapshot.id,
          .body = std::move(body)};
}

Result<void> Manager::put(const Snapshot& snapshot, store::Write& change) const {
  ATOLL_ASSIGN(std::string body, encode_snapshot(snapshot, network_.seal));
  change.put_documents.push_back(document_of(snapshot, std::move(body)));
  return {};
}

Result<void> Manager::load_snapshots() {
  ATOLL_ASSIGN(auto documents, store_.load_documents(kKind));
  for (const store::Document& document : documents) {
    ATOLL_ASSIGN(Snapshot snapshot, decode_snapshot(document.body, network_.seal));
    snapshots_.add(std::make_shared<const Snapshot>(std::move(snapshot)));
  }
  return {};
}

Result<SnapshotPtr> Manager::find_snapshot(const Caller& caller,
                                           const std::string& id_or_tag) const {
  if (auto found = snapshots_.find(caller, id_or_tag)) return found;
  return fail(ErrorCode::NotFound,
              "no snapshot '" + id_or_tag + "'; list them to see what there is");
}

// The state is there before anything tells of it: one that nothing tells of is cleared away at the
// next start.
Task<Result<SnapshotPtr>> Manager::take_snapshot(SandboxPtr sandbox, SnapshotInput input) {
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted) co_return fail(ErrorCode::NotFound, "the sandbox has been deleted");
  Snapshot snapshot = describe_snapshot(*sandbox, std::move(input), random_id("snap-"));
  if (snapshot.automatic) snapshot.number = next_point(*sandbox);
  ATOLL_CO_ASSIGN(CopyTimings timings,
                  co_await backend_.keep_state(sandbox->record.id, snapshot.id));
  failpoint("snapshot.kept");
  snapshot.frozen_us = timings.frozen_us;
  snapshot.total_us = timings.total_us;
  snapshot.bytes = timings.bytes;
  std::string event = snapshot.automatic ? "" : "sandbox.snapshot";
  co_return co_await keep_snapshot(*sandbox, std::move(snapshot), std::move(event));
}

Task<Result<SnapshotPtr>> Manager::keep_snapshot(Sandbox& sandbox, Snapshot snapshot,
                                                 std::string event) {
  Record& record = sandbox.record;
  record.snapshot = snapshot.id;
  if (snapshot.automatic) record.untouched = false;
  store::Write change;
  auto written = put(record, change);
  if (written) written = put(snapshot, change);
  if (!event.empty()) change.events.push_back(event_of(sandbox, std::move(event)));
  if (written) written = co_await write(std::move(change));
  if (!written) {
    record.snapshot = snapshot.parent;
    (void)co_await backend_.drop_state(snapshot.id);
    if (snapshot.memory) (void)co_await backend_.forget_memory(snapshot.id);
    co_return fail(std::move(written).error());
  }
  failpoint("snapshot.written");
  auto kept = std::make_shared<const Snapshot>(std::move(snapshot));
  snapshots_.add(kept);
  co_return SnapshotPtr(kept);
}

Task<Result<SnapshotPtr>> Manager::import_snapshot(Caller caller, std::string template_key,
                                                   SnapshotInput input) {
  ATOLL_CO_ASSIGN(FoundTemplate found, backend_.find_template(template_key));
  CreateInput create;
  create.template_key = template_key;
  create.session_key = random_id("import-");
  ATOLL_CO_ASSIGN(auto handle, co_await backend_.create(std::move(create)));
  Snapshot snapshot;
  snapshot.id = random_id("snap-");
  auto kept = co_await backend_.keep_state(handle->session().id(), snapshot.id);
  snapshot.source.id = handle->session().id();
  snapshot.source.owner = caller.owner;
  snapshot.source.backend_state = handle->capture_state().metadata;
  (void)co_await handle->destroy();
  if (!kept) co_return fail(std::move(kept).error());
  Spec& spec = snapshot.source.spec;
  spec.template_name = template_key;
  spec.env = found.settings.env;
  spec.limits = found.settings.limits != Limits() ? found.settings.limits : default_limits();
  if (!found.settings.user.empty()) spec.user = found.settings.user;
  snapshot.source.status = Status::Stopped;
  snapshot.message = std::move(input.message);
  snapshot.tags = std::move(input.tags);
  snapshot.created_at_ms = wall_clock_ms();
  store::Write change;
  auto written = put(snapshot, change);
  if (written) written = co_await write(std::move(change));
  if (!written) {
    (void)co_await backend_.drop_state(snapshot.id);
    co_return fail(std::move(written).error());
  }
  auto made = std::make_shared<const Snapshot>(std::move(snapshot));
  snapshots_.add(made);
  co_return SnapshotPtr(made);
}

Task<Result<void>> Manager::remove_snapshot(SnapshotPtr snapshot) {
  store::Write change;
  change.erase_documents.push_back(document_of(*snapshot, ""));
  ATOLL_CO_TRY(co_await write(std::move(change)));
  failpoint("snapshot.forgotten");
  snapshots_.remove(snapshot->id);
  if (snapshot->memory) ATOLL_CO_TRY(co_await backend_.forget_memory(snapshot->id));
  co_return co_await backend_.drop_state(snapshot->id);
}

Task<void> Manager::remove_expired_snapshots() {
  for (const SnapshotPtr& snapshot : snapshots_.expired(wall_clock_ms())) {
    auto removed = co_await remove_snapshot(snapshot);
    if (removed) continue;
    log(LogLevel::Warning, "cannot remove an expired snapshot",
        {{"snapshot", snapshot->id}, {"error", removed.error().message()}});
  }
}

static std::string layers_of(const Record& record) {
  auto found = record.backend_state.find("layers");
  return found == record.backend_state.end() ? std::string() : found->second;
}

Task<Result<Difference>> Manager::diff(SandboxPtr sandbox, SnapshotPtr from, SnapshotPtr to,
                                       bool with_texts) {
  const Record& after = to != nullptr ? to->source : sandbox->record;
  if (layers_of(from->source) != layers_of(after)) {
    co_return fail(ErrorCode::InvalidState,
                   "the two stand on different templates: they have nothing in common");
  }
  DiffInput input{.before = from->id,
                  .after = to != nullptr ? to->id : std::string(),
                  .session_key = sandbox->record.id,
                  .metadata = after.backend_state,
                  .with_texts = with_texts};
  co_return co_await backend_.diff_states(std::move(input));
}

// The files change places at once, so a crash leaves the old ones or the new ones, and a sandbox
// that is stopped.
Task<Result<void>> Manager::restore(SandboxPtr sandbox, SnapshotPtr snapshot) {
  {
    auto lock = co_await sandbox->lifecycle.lock();
    Record& record = sandbox->record;
    if (sandbox->deleted) co_return fail(ErrorCode::NotFound, "the sandbox has been deleted");
    if (layers_of(record) != layers_of(snapshot->source)) {
      co_return fail(ErrorCode::InvalidState,
                     "the snapshot stands on another template; create a sandbox from it instead");
    }
    if (sandbox->handle != nullptr) {
      Ending ending{EndCause::Request, "restoring " + snapshot->id};
      ATOLL_CO_TRY(co_await stop_locked(*sandbox, std::move(ending)));
    }
    failpoint("restore.stopped");
    ATOLL_CO_TRY(co_await backend_.restore_state(record.id, snapshot->id));
    failpoint("restore.done");
    Record before = record;
    if (!before.memory.empty()) record.status = Status::Stopped;
    record.snapshot = snapshot->id;
    record.untouched = true;
    record.memory.clear();
    record.memory_bytes = 0;
    std::string paused = before.memory;
    ATOLL_CO_TRY(co_await save_or_restore(*sandbox, std::move(before), "sandbox.restored"));
    failpoint("restore.saved");
    if (!paused.empty()) (void)co_await backend_.forget_memory(std::move(paused));
    if (snapshot->memory) {
      co_return co_await revive_locked(*sandbox, snapshot->id, "sandbox.resumed");
    }
  }
  co_return co_await resume(std::move(sandbox));
}

Task<Result<SandboxPtr>> Manager::create_from(Caller caller, SnapshotPtr snapshot, Spec spec) {
  Origin origin{.state = snapshot->id,
                .sandbox = {},
                .snapshot = snapshot->id,
                .template_key = snapshot->source.template_key,
                .backend_state = snapshot->source.backend_state};
  co_return co_await create(std::move(caller), std::move(spec), std::move(origin));
}

Task<std::vector<Result<SandboxPtr>>> Manager::create_all(Caller caller, std::vector<Spec> specs,
                                                          Origin origin) {
  using Made = async::OneShot<Result<SandboxPtr>>;
  std::vector<std::shared_ptr<Made>> under_way;
  for (Spec& spec : specs) {
    auto made = std::make_shared<Made>();
    under_way.push_back(made);
    auto make = [self = shared_from_this(), made, caller, origin,
                 spec = std::move(spec)]() -> Task<void> {
      made->set(co_await self->create(caller, spec, origin));
    };
    asio::co_spawn(executor_, make, asio::detached);
  }
  std::vector<Result<SandboxPtr>> all;
  for (const auto& made : under_way) all.push_back(co_await made->wait());
  co_return all;
}

// All of them or none. Several are copies of one state, which lasts as long as they take to make.
Task<Result<std::vector<SandboxPtr>>> Manager::fork(SandboxPtr sandbox, Caller caller,
                                                    std::vector<Spec> specs) {
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted) co_return fail(ErrorCode::NotFound, "the sandbox has been deleted");
  const Record& record = sandbox->record;
  Origin origin{.state = {},
                .sandbox = record.id,
                .snapshot = record.snapshot,
                .template_key = record.template_key,
                .backend_state = record.backend_state};
  bool several = specs.size() > 1;
  if (several) {
    origin.state = random_id("fork-");
    ATOLL_CO_TRY(co_await backend_.keep_state(record.id, origin.state));
    failpoint("fork.kept");
  }
  auto all = co_await create_all(std::move(caller), std::move(specs), origin);
  failpoint("fork.made");
  if (several) (void)co_await backend_.drop_state(origin.state);
  co_return co_await all_or_none(std::move(all));
}

Task<Result<std::vector<SandboxPtr>>> Manager::all_or_none(std::vector<Result<SandboxPtr>> all) {
  std::vector<SandboxPtr> made;
  for (auto& one : all) {
    if (one) made.push_back(*one);
  }
  if (made.size() == all.size()) co_return made;
  for (const SandboxPtr& unwanted : made) {
    (void)co_await remove(unwanted, {EndCause::Request, "another of its fork could not be made"});
  }
  for (auto& one : all) {
    if (!one) co_return fail(std::move(one).error());
  }
  co_return made;
}

// Files of the new sandbox, before it is started.
Task<Result<void>> Manager::copy_files(const Origin& origin, const std::string& id) {
  auto copied = origin.state.empty() ? co_await backend_.copy_files(origin.sandbox, id)
                                     : co_await backend_.copy_state(origin.state, id);
  if (!copied) co_return fail(std::move(copied).error());
  co_return Result<void>();
}

// A copy is another machine. Programs that keep a random seed in memory or in a file of their own
// are not known to us; the kernel's generator is the host's and never repeats.
Task<Result<void>> Manager::renew_identity(SandboxSession& session) {
  constexpr const char* kMachineId = "/etc/machine-id";
  auto present = co_await session.stat(kMachineId);
  if (!present || present->size == 0) co_return Result<void>();
  ATOLL_CO_ASSIGN(auto writer, co_await session.write_file(
                                   kMachineId, WriteOptions{.mode = 0444, .user = "root"}));
  ATOLL_CO_TRY(co_await writer->write(random_id("", 32) + "\n"));
  ATOLL_CO_TRY(co_await writer->finish());
  co_return Result<void>();
}

}  // namespace atl::sandbox
