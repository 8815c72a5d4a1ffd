#include "api/e2b/samples.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace atl::api::e2b {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::seconds kInterval(5);
constexpr int64_t kFollowMs = 300'000;  // after the last question
constexpr size_t kMaxSamples = 120;     // ten minutes

}  // namespace

// The processor's share is that of the time since the last look; of the first, since the run began.
Task<Result<void>> Samples::take(const sandbox::SandboxPtr& sandbox) {
  auto handle = sandbox->handle;
  if (handle == nullptr) co_return Result<void>();
  ATOLL_CO_ASSIGN(HostUsage used, co_await handle->usage());
  Series& series = series_[sandbox->record.id];
  int64_t now = sandbox::BootTime::now().ms;
  bool restarted = !series.samples.empty() && series.samples.back().used.cpu_us > used.cpu_us;
  if (restarted) series.samples.clear();
  int64_t since = series.samples.empty() ? sandbox->record.since.ms : series.boot_ms;
  uint64_t before = series.samples.empty() ? 0 : series.samples.back().used.cpu_us;
  if (now <= since) co_return Result<void>();  // twice within a moment is once
  double share =
      static_cast<double>(used.cpu_us - before) / 10.0 / static_cast<double>(now - since);
  series.samples.push_back({sandbox::wall_clock_ms(), share, used});
  series.boot_ms = now;
  if (series.samples.size() > kMaxSamples) series.samples.pop_front();
  co_return Result<void>();
}

Task<void> Samples::follow(sandbox::Manager& manager) {
  auto self = shared_from_this();
  asio::steady_timer timer(co_await asio::this_coro::executor);
  while (!series_.empty()) {
    timer.expires_after(kInterval);
    auto [error] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error) break;
    int64_t now = sandbox::BootTime::now().ms;
    std::erase_if(series_, [&](const auto& entry) {
      return now - entry.second.asked_at_ms > kFollowMs ||
             manager.index().find(entry.first) == nullptr;
    });
    std::vector<std::string> ids;
    for (const auto& [id, series] : series_) ids.push_back(id);
    for (const std::string& id : ids) {
      if (auto sandbox = manager.index().find(id)) (void)co_await take(sandbox);
    }
  }
  following_ = false;
}

Task<Result<std::vector<Sample>>> Samples::of(Context& context, sandbox::SandboxPtr sandbox) {
  ATOLL_CO_TRY(co_await take(sandbox));
  auto found = series_.find(sandbox->record.id);
  if (found == series_.end()) co_return std::vector<Sample>();
  found->second.asked_at_ms = sandbox::BootTime::now().ms;
  std::vector<Sample> samples(found->second.samples.begin(), found->second.samples.end());
  if (!following_) {
    following_ = true;
    auto executor = co_await asio::this_coro::executor;
    asio::co_spawn(
        executor,
        [self = shared_from_this(), &manager = context.manager] { return self->follow(manager); },
        asio::detached);
  }
  co_return samples;
}

}  // namespace atl::api::e2b
