#include "api/e2b/builds.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>

#include "api/e2b/build_run.h"
#include "base/random_id.h"

namespace atl::api::e2b {
namespace {

namespace asio = boost::asio;

constexpr size_t kMaxLines = 20'000;
constexpr size_t kMaxLineBytes = 4096;
constexpr size_t kMaxTextBytes = 4u << 20;  // of all lines
constexpr size_t kMaxRemembered = 64;       // of a tenant's builds that are over
constexpr int64_t kRememberMs = 3'600'000;
constexpr uint32_t kStoreSeconds = 3600;

bool is_over(const Build& build) {
  return build.status == Build::Status::Ready || build.status == Build::Status::Error;
}

}  // namespace

void Build::say(std::string level, std::string text, std::string step) {
  if (text.size() > kMaxLineBytes) text.resize(kMaxLineBytes);
  // Why it failed is said last, and must not be what is left out.
  bool full = lines.size() >= kMaxLines || text_bytes + text.size() > kMaxTextBytes;
  if (full && level != "error") return;
  text_bytes += text.size();
  lines.push_back({sandbox::wall_clock_ms(), std::move(level), std::move(text), std::move(step)});
}

Result<std::shared_ptr<Build>> Builds::add(const sandbox::Caller& caller, BuildOrder order) {
  int64_t now = sandbox::wall_clock_ms();
  std::erase_if(builds_, [&](const auto& entry) {
    return now - entry.second->begun_at_ms > kRememberMs &&
           entry.second->status != Build::Status::Building;
  });
  size_t under_way = 0, over = 0;
  auto oldest = builds_.end();
  for (auto at = builds_.begin(); at != builds_.end(); ++at) {
    const Build& build = *at->second;
    if (build.caller.owner.tenant != caller.owner.tenant) continue;
    if (!is_over(build)) {
      under_way++;
      continue;
    }
    over++;
    bool older = oldest == builds_.end() || build.begun_at_ms < oldest->second->begun_at_ms;
    if (older) oldest = at;
  }
  if (over >= kMaxRemembered) builds_.erase(oldest);
  if (under_way >= kMost) {
    return fail(ErrorCode::ResourceExhausted, "at most 16 builds at a time; wait for one to end");
  }
  auto build = std::make_shared<Build>();
  build->id = random_id("build-");
  build->order = std::move(order);
  build->caller = caller;
  build->begun_at_ms = now;
  builds_[build->id] = build;
  return build;
}

Result<std::shared_ptr<Build>> Builds::find(const sandbox::Caller& caller, const std::string& name,
                                            const std::string& id) const {
  auto found = builds_.find(id);
  bool own = found != builds_.end() && found->second->order.name == name &&
             found->second->caller.owner.tenant == caller.owner.tenant;
  if (own) return found->second;
  return fail(ErrorCode::NotFound, "no build '" + id + "' of '" + name + "'");
}

std::shared_ptr<Build> Builds::newest(const sandbox::Caller& caller,
                                      const std::string& name) const {
  std::shared_ptr<Build> newest;
  for (const auto& [id, build] : builds_) {
    bool own = build->order.name == name && build->caller.owner.tenant == caller.owner.tenant;
    if (own && (newest == nullptr || newest->begun_at_ms < build->begun_at_ms)) newest = build;
  }
  return newest;
}

std::string Builds::place_of(const std::string& files_hash) { return "/files/" + files_hash; }

Task<Result<sandbox::SandboxPtr>> Builds::store(Context& context) {
  const std::string& tenant = context.who.caller.owner.tenant;
  if (auto known = context.manager.index().find(stores_[tenant])) co_return known;
  sandbox::Spec spec;
  spec.limits = context.manager.default_limits();
  spec.max_lifetime_s = kStoreSeconds;
  spec.at_lifetime = sandbox::AtLifetime::Delete;
  spec.metadata["atoll.purpose"] = "files of template builds";
  spec.idempotency_key = "e2b-build-files";
  ATOLL_CO_ASSIGN(auto made, co_await context.manager.create(context.who.caller, std::move(spec)));
  stores_[tenant] = made->record.id;
  co_return made;
}

Task<Result<void>> Builds::start(Context& context, std::shared_ptr<Build> build, BuildPlan plan) {
  if (build->status != Build::Status::Waiting) {
    co_return fail(ErrorCode::Conflict, "this build has begun already");
  }
  auto known = stores_.find(build->caller.owner.tenant);
  sandbox::SandboxPtr files =
      known == stores_.end() ? nullptr : context.manager.index().find(known->second);
  auto run = std::make_shared<BuildRun>(context.manager, build, std::move(plan), files);
  ATOLL_CO_TRY(run->check(context));
  build->status = Build::Status::Building;
  auto executor = co_await asio::this_coro::executor;
  asio::co_spawn(
      executor, [run] { return run->carry_out(); }, asio::detached);
  co_return Result<void>();
}

}  // namespace atl::api::e2b
