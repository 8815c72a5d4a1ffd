// Sandboxes' processes, kept: checkpoints, pauses to disk, forks of what runs.
#include "base/random_id.h"
#include "sandbox/manager.h"

namespace atl::sandbox {

static std::string mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

static Error gone() { return Error(ErrorCode::NotFound, "the sandbox has been deleted"); }

bool Manager::is_memory_known(const std::string& image) const {
  if (snapshots_.contains(image)) return true;
  for (const auto& [id, sandbox] : index_.all()) {
    if (sandbox->record.memory == image) return true;
  }
  return false;
}

Result<void> Manager::check_can_keep(const Sandbox& sandbox) const {
  if (sandbox.deleted) return fail(gone());
  if (sandbox.record.status == Status::Running && sandbox.handle != nullptr) return {};
  return fail(ErrorCode::InvalidState,
              "only the processes of a running sandbox can be kept; it is " +
                  std::string(to_string(sandbox.record.status)));
}

// What its processes have is about what the image will take.
Task<Result<void>> Manager::check_memory_room(SandboxHandle& handle) const {
  if (options_.memory_images_bytes == 0) co_return Result<void>();
  uint64_t used = snapshots_.memory_bytes();
  for (const auto& [id, sandbox] : index_.all()) used += sandbox->record.memory_bytes;
  ATOLL_CO_ASSIGN(Usage now, co_await handle.usage());
  if (used + now.memory_bytes <= options_.memory_images_bytes) co_return Result<void>();
  co_return fail(ErrorCode::NoSpace, "memory images take " + mebibytes(used) + " of " +
                                         mebibytes(options_.memory_images_bytes) +
                                         ", and this one needs about " +
                                         mebibytes(now.memory_bytes) +
                                         ": remove checkpoints or raise memory_images_size");
}

Task<Result<SnapshotPtr>> Manager::take_checkpoint(SandboxPtr sandbox, SnapshotInput input,
                                                   bool leave_running) {
  auto lock = co_await sandbox->lifecycle.lock();
  ATOLL_CO_TRY(check_can_keep(*sandbox));
  auto handle = sandbox->handle;
  ATOLL_CO_TRY(co_await check_memory_room(*handle));
  Snapshot snapshot = describe_snapshot(*sandbox, std::move(input), random_id("ckpt-"));
  MemoryInput keep{.session_key = sandbox->record.id,
                   .image = snapshot.id,
                   .state = snapshot.id,
                   .end = false,
                   .durable = true};
  ATOLL_CO_ASSIGN(CopyTimings timings, co_await backend_.keep_memory(std::move(keep)));
  snapshot.frozen_us = timings.frozen_us;
  snapshot.total_us = timings.total_us;
  snapshot.memory = true;
  snapshot.memory_bytes = timings.bytes;
  ATOLL_CO_ASSIGN(SnapshotPtr kept,
                  co_await keep_snapshot(*sandbox, std::move(snapshot), "sandbox.checkpoint"));
  // Only now: what is not recorded must not be all that is left of them.
  if (!leave_running) {
    ATOLL_CO_TRY(co_await stop_locked(*sandbox, {EndCause::Request, "kept in " + kept->id}));
  }
  co_return kept;
}

Task<Result<void>> Manager::pause_to_disk(SandboxPtr sandbox) {
  auto lock = co_await sandbox->lifecycle.lock();
  Record& record = sandbox->record;
  if (!sandbox->deleted && !record.memory.empty()) co_return Result<void>();
  ATOLL_CO_TRY(check_can_keep(*sandbox));
  auto handle = sandbox->handle;
  ATOLL_CO_TRY(co_await check_memory_room(*handle));
  uint64_t cpu_us = 0;
  if (auto used = co_await handle->usage()) cpu_us = used->cpu_us;
  // Written down before: whoever finds the sandbox gone looks there.
  record.memory = random_id("pause-");
  store::Write intent;
  auto intended = put(record, intent);
  if (intended) intended = co_await write(std::move(intent));
  MemoryInput keep{
      .session_key = record.id, .image = record.memory, .state = {}, .end = true, .durable = true};
  Result<CopyTimings> kept = fail(ErrorCode::Internal, "");
  if (intended) kept = co_await backend_.keep_memory(std::move(keep));
  if (!intended || !kept) {
    record.memory.clear();
    co_return fail(intended ? std::move(kept).error() : std::move(intended).error());
  }
  sandbox->handle = nullptr;
  end_run(*sandbox, {EndCause::None, ""}, cpu_us);
  record.status = Status::Paused;
  record.memory_bytes = kept->bytes;
  // Should this fail, it is paused all the same, and the next start finds it so.
  co_return co_await save(*sandbox, "sandbox.paused");
}

// From its own pause, or from a checkpoint whose files it has been given.
Task<Result<void>> Manager::revive_locked(Sandbox& sandbox, std::string image, std::string event) {
  Record& record = sandbox.record;
  ATOLL_CO_ASSIGN(CreateInput input,
                  input_for(record.id, record.owner, record.spec, template_of(record)));
  input.existing = true;
  input.existing_metadata = record.backend_state;
  ATOLL_CO_ASSIGN(auto handle, co_await backend_.revive(std::move(input), image));
  auto ready = co_await handle->ready();
  if (!ready) {
    (void)co_await handle->dispose();
    co_return ready;
  }
  Record before = record;
  std::string paused = std::exchange(record.memory, {});
  record.memory_bytes = 0;
  sandbox.handle = std::move(handle);
  // A revived sandbox stands in a new network namespace, without a way out until it is given one.
  sandbox.trusted_ca.clear();
  if (auto applied = co_await apply_network(sandbox, Missing::Accept); !applied) {
    record = std::move(before);
    auto unwanted = std::exchange(sandbox.handle, nullptr);
    (void)co_await unwanted->dispose();
    co_return applied;
  }
  sandbox.source = Source::Cold;
  record.started_at_ms = wall_clock_ms();
  record.ended_at_ms = 0;
  record.since = BootTime::now();
  record.status = Status::Running;
  record.cause = EndCause::None;
  record.reason.clear();
  record.backend_state = sandbox.handle->capture_state().metadata;
  sandbox.touch();
  auto saved = co_await save_or_restore(sandbox, std::move(before), std::move(event));
  if (!saved) {
    auto unwanted = std::exchange(sandbox.handle, nullptr);
    (void)co_await unwanted->dispose();
    co_return saved;
  }
  // Only now: until the row says that it runs, a crash must find what it was kept in.
  if (!paused.empty()) (void)co_await backend_.forget_memory(std::move(paused));
  co_return Result<void>();
}

Task<void> Manager::drop_paused_memory(Sandbox& sandbox) {
  std::string image = std::exchange(sandbox.record.memory, {});
  sandbox.record.memory_bytes = 0;
  if (!image.empty()) (void)co_await backend_.forget_memory(std::move(image));
}

Task<Result<std::vector<SandboxPtr>>> Manager::fork_memory(SandboxPtr sandbox, Caller caller,
                                                           std::vector<Spec> specs,
                                                           SnapshotPtr checkpoint) {
  Origin origin;
  if (checkpoint != nullptr) {
    origin = {.state = checkpoint->id,
              .sandbox = {},
              .memory = checkpoint->id,
              .snapshot = checkpoint->id,
              .template_key = checkpoint->source.template_key,
              .backend_state = checkpoint->source.backend_state};
    auto all = co_await create_all(std::move(caller), std::move(specs), origin);
    co_return co_await all_or_none(std::move(all));
  }
  auto lock = co_await sandbox->lifecycle.lock();
  ATOLL_CO_TRY(check_can_keep(*sandbox));
  const Record& record = sandbox->record;
  ATOLL_CO_TRY(co_await check_memory_room(*sandbox->handle));
  std::string name = random_id("fork-");
  origin = {.state = name,
            .sandbox = {},
            .memory = name,
            .snapshot = record.snapshot,
            .template_key = record.template_key,
            .backend_state = record.backend_state};
  MemoryInput keep{
      .session_key = record.id, .image = name, .state = name, .end = false, .durable = false};
  ATOLL_CO_TRY(co_await backend_.keep_memory(std::move(keep)));
  auto all = co_await create_all(std::move(caller), std::move(specs), origin);
  (void)co_await backend_.forget_memory(name);
  (void)co_await backend_.drop_state(name);
  co_return co_await all_or_none(std::move(all));
}

}  // namespace atl::sandbox
