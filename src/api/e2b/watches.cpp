#include "api/e2b/watches.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/json_escape.h"
#include "base/random_id.h"

namespace atl::api::e2b {
namespace {

namespace asio = boost::asio;

// Somebody who never fetches loses the oldest rather than the server its memory.
constexpr size_t kMaxEvents = 10'000;
constexpr size_t kMaxEventBytes = 1u << 20;

std::string_view type_of(FileChange change) {
  switch (change) {
    case FileChange::Created:
      return "EVENT_TYPE_CREATE";
    case FileChange::Modified:
      return "EVENT_TYPE_WRITE";
    case FileChange::Removed:
      return "EVENT_TYPE_REMOVE";
    case FileChange::Renamed:
      return "EVENT_TYPE_RENAME";
    case FileChange::Attributes:
      return "EVENT_TYPE_CHMOD";
    case FileChange::Overflow:
      return "";
  }
  return "";
}

}  // namespace

bool is_temporary(std::string_view path) {
  std::string_view name = path.substr(path.find_last_of('/') + 1);
  if (name.starts_with(".atoll-")) return true;
  return name.size() > 1 && name.front() == '#' &&
         name.find_first_not_of("0123456789", 1) == name.npos;
}

std::string EventTranslator::event_json(std::string_view path, std::string_view type) const {
  if (path.starts_with(base_)) path.remove_prefix(base_.size());
  while (path.starts_with('/')) path.remove_prefix(1);
  std::string out = R"({"name":)";
  append_json_string(out, path);
  return out.append(R"(,"type":")").append(type).append(R"("})");
}

Task<std::vector<std::string>> EventTranslator::translate(FileEvent event) {
  bool renamed = event.change == FileChange::Renamed;
  std::vector<std::string> texts;
  if (is_temporary(event.path)) {
    if (renamed) replacing_ = true;
    co_return texts;
  }
  std::string_view type = type_of(event.change);
  if (type.empty()) co_return texts;
  if (!renamed) {
    texts.push_back(event_json(event.path, type));
    co_return texts;
  }
  bool written = std::exchange(replacing_, false);
  auto there = co_await session_->exists(event.path);
  bool arrived = written || (there && *there);
  texts.push_back(event_json(event.path, arrived ? "EVENT_TYPE_CREATE" : type));
  if (written) texts.push_back(event_json(event.path, "EVENT_TYPE_WRITE"));
  co_return texts;
}

Task<Result<std::string>> Watches::add(const Target& target, std::unique_ptr<FileWatcher> watcher,
                                       std::string base) {
  const std::string& sandbox = target.sandbox->record.id;
  auto own = std::count_if(watches_.begin(), watches_.end(),
                           [&](const auto& entry) { return entry.second->sandbox == sandbox; });
  if (static_cast<size_t>(own) >= kMostPerSandbox) {
    co_return fail(ErrorCode::ResourceExhausted, "a sandbox has at most 64 watchers; remove some");
  }
  auto watch = std::make_shared<Watch>(
      Watch{sandbox, EventTranslator(target.session, std::move(base)), std::move(watcher), {}, 0});
  std::string id = random_id("w-");
  watches_[id] = watch;
  auto executor = co_await asio::this_coro::executor;
  asio::co_spawn(
      executor, [self = shared_from_this(), id, watch] { return self->gather(id, watch); },
      asio::detached);
  co_return id;
}

// Until the watch is removed or its sandbox ends; then it is no more.
Task<void> Watches::gather(std::string id, std::shared_ptr<Watch> watch) {
  auto self = shared_from_this();
  for (;;) {
    auto event = co_await watch->watcher->next();
    if (!event) break;
    for (const std::string& text : co_await watch->translator.translate(std::move(*event))) {
      if (watch->count++ == kMaxEvents || watch->events.size() > kMaxEventBytes) {
        watch->events.clear();
        watch->count = 1;
      }
      watch->events.append(watch->events.empty() ? "" : ",").append(text);
    }
  }
  watches_.erase(id);
}

std::shared_ptr<Watches::Watch> Watches::find(const std::string& sandbox,
                                              const std::string& id) const {
  auto found = watches_.find(id);
  bool own = found != watches_.end() && found->second->sandbox == sandbox;
  return own ? found->second : nullptr;
}

Result<std::string> Watches::take(const std::string& sandbox, const std::string& id) {
  auto watch = find(sandbox, id);
  if (watch == nullptr) return fail(ErrorCode::NotFound, "watcher with id " + id + " not found");
  watch->count = 0;
  return "[" + std::exchange(watch->events, {}) + "]";
}

void Watches::remove(const std::string& sandbox, const std::string& id) {
  if (auto watch = find(sandbox, id)) watch->watcher->cancel();
  if (find(sandbox, id) != nullptr) watches_.erase(id);
}

}  // namespace atl::api::e2b
