#include "sandbox/pool.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "base/random_id.h"

namespace atl::sandbox {

namespace asio = boost::asio;

static constexpr std::chrono::milliseconds kQuiet{3};
static constexpr int kDrainRounds = 5000;
// Most of a build is waiting for the kernel.
static constexpr size_t kBuildsAtOnce = 16;
static constexpr int kFailuresInARow = 3;
static constexpr std::chrono::milliseconds kShedPause{100};

Task<void> sleep_for(std::chrono::milliseconds time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  (void)co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}

Pool::Pool(asio::any_io_executor executor, SandboxBackend& backend, PoolOptions options,
           Sleep sleep)
    : executor_(executor),
      backend_(backend),
      options_(options),
      quiet_(executor),
      sleep_(std::move(sleep)) {
  options_.maximum = std::max(options_.maximum, options_.target);
}

void Pool::warm(const std::string& template_name) {
  if (options_.target == 0 || draining_) return;
  Shelf& shelf = shelves_[template_name];
  if (shelf.retired) return;
  if (shelf.target == 0) shelf.target = options_.target;
  auto self = shared_from_this();
  auto build = [self, template_name, generation = shelf.generation]() -> Task<void> {
    return self->add_one(template_name, generation);
  };
  while (shelf.under_way < kBuildsAtOnce && shelf.failures <= kFailuresInARow &&
         shelf.ready.size() + shelf.under_way < shelf.target) {
    shelf.under_way++;
    asio::co_spawn(executor_, build, asio::detached);
  }
}

std::shared_ptr<SandboxHandle> Pool::take(const std::string& template_name) {
  auto it = shelves_.find(template_name);
  if (it == shelves_.end()) return nullptr;
  Shelf& shelf = it->second;
  shelf.retired = false;  // somebody asks for it again
  shelf.failures = 0;
  std::shared_ptr<SandboxHandle> handle;
  if (!shelf.ready.empty()) {
    handle = std::move(shelf.ready.front());
    shelf.ready.pop_front();
  } else {
    grow(shelf);
  }
  shelf.untouched = std::min(shelf.untouched, shelf.ready.size());
  return handle;
}

// Demand outran us: keep more from now on.
void Pool::grow(Shelf& shelf) {
  shelf.target = std::min(std::max(shelf.target, options_.target) * 2, options_.maximum);
  if (shelf.target == options_.target || std::exchange(shrinking_, true)) return;
  auto self = shared_from_this();
  asio::co_spawn(
      executor_, [self]() -> Task<void> { return self->shrink(); }, asio::detached);
}

// Runs only while a shelf is larger than it need be: a pool at rest costs no timer.
Task<void> Pool::shrink() {
  auto is_large = [this](const auto& named) { return named.second.target > options_.target; };
  while (!draining_ && std::any_of(shelves_.begin(), shelves_.end(), is_large)) {
    co_await sleep_(options_.idle);
    for (auto& [name, shelf] : shelves_) {
      if (shelf.target > options_.target) co_await shed(shelf);
    }
  }
  shrinking_ = false;
}

// One after another and not all at once, so that nobody's command waits for it.
Task<void> Pool::shed(Shelf& shelf) {
  if (shelf.target <= options_.target) co_return;
  auto surplus = std::min<size_t>(shelf.untouched, shelf.target - options_.target);
  shelf.target -= static_cast<uint32_t>((surplus + 1) / 2);
  while (!draining_ && shelf.ready.size() > shelf.target) {
    auto handle = std::move(shelf.ready.back());
    shelf.ready.pop_back();
    (void)co_await handle->destroy();
    co_await sleep_(kShedPause);
  }
  shelf.untouched = shelf.ready.size();
}

void Pool::refill(const std::string& template_name) {
  Shelf& shelf = shelves_[template_name];
  if (shelf.ready.size() <= shelf.target / 2) return warm(template_name);
  // A sandbox just handed out is about to be used: building its successor now would take the
  // processor from it.
  shelf.refill_due = true;
  quiet_.expires_after(kQuiet);
  auto self = shared_from_this();
  quiet_.async_wait([self](boost::system::error_code error) {
    if (error) return;
    for (auto& [name, due] : self->shelves_) {
      if (std::exchange(due.refill_due, false)) self->warm(name);
    }
  });
}

Task<Result<std::shared_ptr<SandboxHandle>>> Pool::build(const std::string& template_name) {
  CreateInput input;
  input.template_key = template_name;
  input.session_key = random_id("sandbox-");
  input.limits = options_.limits;
  ATOLL_CO_ASSIGN(auto handle, co_await backend_.create(std::move(input)));
  auto ready = co_await handle->ready();
  if (ready) co_return handle;
  (void)co_await handle->destroy();
  co_return fail(std::move(ready).error());
}

Task<void> Pool::add_one(std::string template_name, int generation) {
  auto handle = co_await build(template_name);
  Shelf& shelf = shelves_[template_name];
  bool unwanted = draining_ || shelf.generation != generation;
  if (handle && unwanted) (void)co_await (*handle)->destroy();
  shelf.under_way--;
  if (unwanted) co_return;
  if (handle) {
    shelf.ready.push_back(std::move(*handle));
    shelf.trouble.reset();
  } else {
    shelf.failures++;
    shelf.trouble = handle.error();
    log(LogLevel::Warning, "cannot refill the pool",
        {{"template", template_name}, {"error", handle.error().message()}});
  }
  warm(template_name);
}

bool Pool::contains(const std::string& session_key) const {
  for (const auto& [name, shelf] : shelves_) {
    for (const auto& handle : shelf.ready) {
      if (handle->session().id() == session_key) return true;
    }
  }
  return false;
}

void Pool::forget(const std::string& session_key) {
  for (auto& [name, shelf] : shelves_) {
    std::erase_if(shelf.ready,
                  [&](const auto& handle) { return handle->session().id() == session_key; });
    warm(name);
  }
}

std::optional<Error> Pool::trouble(const std::string& template_name) const {
  auto shelf = shelves_.find(template_name);
  if (shelf == shelves_.end() || !shelf->second.ready.empty()) return std::nullopt;
  return shelf->second.trouble;
}

// The shelf stays: coroutines under way refer to it.
void Pool::retire(const std::string& template_name) {
  auto it = shelves_.find(template_name);
  if (it == shelves_.end()) return;
  Shelf& shelf = it->second;
  shelf.generation++;
  shelf.retired = true;
  shelf.refill_due = false;
  shelf.target = 0;
  shelf.untouched = 0;
  auto self = shared_from_this();
  asio::co_spawn(
      executor_,
      [self, handles = std::exchange(shelf.ready, {})]() -> Task<void> {
        return self->destroy(handles);
      },
      asio::detached);
}

Task<void> Pool::destroy(std::deque<std::shared_ptr<SandboxHandle>> handles) {
  retiring_++;
  for (const auto& handle : handles) (void)co_await handle->destroy();
  retiring_--;
}

std::map<std::string, size_t> Pool::sizes() const {
  std::map<std::string, size_t> sizes;
  for (const auto& [name, shelf] : shelves_) {
    if (!shelf.retired) sizes[name] = shelf.ready.size();
  }
  return sizes;
}

// A sandbox being built now must not outlive the pool it was meant for.
Task<void> Pool::refills_ended() {
  asio::steady_timer pause(executor_);
  for (int round = 0; round < kDrainRounds; round++) {
    bool busy = retiring_ != 0;
    for (const auto& [name, shelf] : shelves_) busy |= shelf.under_way != 0;
    if (!busy) co_return;
    pause.expires_after(kQuiet);
    (void)co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

Task<void> Pool::drain() {
  draining_ = true;
  quiet_.cancel();
  co_await refills_ended();
  for (auto& [name, shelf] : shelves_) {
    while (!shelf.ready.empty()) {
      auto handle = std::move(shelf.ready.front());
      shelf.ready.pop_front();
      (void)co_await handle->destroy();
    }
  }
}

}  // namespace atl::sandbox
