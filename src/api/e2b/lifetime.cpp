#include "api/e2b/lifetime.h"

namespace atl::api::e2b {
namespace {

constexpr int64_t kDayMs = 86'400'000;

// Since the present run began.
uint32_t elapsed_seconds(const sandbox::Record& record) {
  int64_t ms = sandbox::BootTime::now().ms - record.since.ms;
  return static_cast<uint32_t>(std::max<int64_t>(0, ms) / 1000);
}

Task<Result<void>> change_lifetime(Context& context, sandbox::SandboxPtr sandbox,
                                   uint32_t seconds) {
  sandbox::Changes changes;
  changes.max_lifetime_s = seconds;
  co_return co_await context.manager.update(std::move(sandbox), context.who.caller,
                                            std::move(changes));
}

}  // namespace

bool is_paused(const sandbox::Record& record) {
  return record.status == sandbox::Status::Paused || record.status == sandbox::Status::Stopped ||
         record.status == sandbox::Status::Failed;
}

int64_t end_of(const sandbox::Record& record) {
  if (record.spec.max_lifetime_s == 0) return sandbox::wall_clock_ms() + kDayMs;
  int64_t left_ms =
      int64_t{record.spec.max_lifetime_s} * 1000 - (sandbox::BootTime::now().ms - record.since.ms);
  return sandbox::wall_clock_ms() + left_ms;
}

Task<Result<void>> set_timeout(Context& context, sandbox::SandboxPtr sandbox, uint32_t seconds,
                               bool only_later) {
  uint32_t wanted = elapsed_seconds(sandbox->record) + seconds;
  uint32_t present = sandbox->record.spec.max_lifetime_s;
  if (only_later && (present == 0 || present >= wanted)) co_return Result<void>();
  // Zero would be "never": what is to end now ends at the next look.
  co_return co_await change_lifetime(context, std::move(sandbox), std::max<uint32_t>(wanted, 1));
}

Task<Result<void>> pause(Context& context, sandbox::SandboxPtr sandbox, bool memory) {
  uint32_t before = sandbox->record.spec.max_lifetime_s;
  ATOLL_CO_TRY(co_await change_lifetime(context, sandbox, 0));
  sandbox::Ending ending{sandbox::EndCause::Request, "paused by request, without its memory"};
  auto done = memory ? co_await context.manager.set_paused(sandbox, true)
                     : co_await context.manager.stop(sandbox, std::move(ending));
  if (!done) (void)co_await change_lifetime(context, sandbox, before);
  co_return done;
}

Task<Result<bool>> resume(Context& context, sandbox::SandboxPtr sandbox, uint32_t seconds) {
  bool slept = is_paused(sandbox->record);
  if (slept) ATOLL_CO_TRY(co_await context.manager.resume(sandbox));
  // One that had no end has one from now on only if it was asleep: a running one keeps the later.
  ATOLL_CO_TRY(co_await set_timeout(context, sandbox, seconds, !slept));
  co_return slept;
}

Task<Result<void>> wake(Context& context, sandbox::SandboxPtr sandbox) {
  const sandbox::Record& record = sandbox->record;
  bool wakes = record.status == sandbox::Status::Paused && record.spec.auto_resume &&
               record.spec.at_lifetime == sandbox::AtLifetime::Pause;
  if (!wakes) co_return Result<void>();
  ATOLL_CO_TRY(co_await resume(context, std::move(sandbox), kDefaultTimeoutSeconds));
  co_return Result<void>();
}

}  // namespace atl::api::e2b
