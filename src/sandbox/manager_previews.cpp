// Ways into sandboxes: links to their ports, and what traffic to them does.
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/log.h"
#include "base/random_id.h"
#include "sandbox/manager.h"

namespace atl::sandbox {

namespace json = boost::json;

// How long one that paused at the end of its time lives once traffic has woken it.
static constexpr uint32_t kWokenSeconds = 300;

Event Manager::event_of_link(const PreviewLink& link, std::string type) {
  json::object data{{"sandboxId", link.sandbox},
                    {"previewId", link.id},
                    {"port", link.port},
                    {"access", to_string(link.access)}};
  return events_.make(link.tenant, link.sandbox, std::move(type), json::serialize(data));
}

// Links of sandboxes that are gone cannot be opened; there are some only after a crash.
Result<void> Manager::load_previews() {
  ATOLL_ASSIGN(auto documents, store_.load_documents(PreviewLinks::kKind));
  return previews_.load(documents);
}

Task<Result<PreviewLink>> Manager::add_preview(SandboxPtr sandbox, PreviewWish wish) {
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted) co_return fail(ErrorCode::NotFound, "the sandbox has been deleted");
  const Record& record = sandbox->record;
  int64_t now = wall_clock_ms();
  size_t good = 0;
  for (const PreviewLink* link : previews_.of(record.id)) {
    if (link->expired(now)) continue;
    good++;
    // Asking for the same once more gives the same.
    bool same = link->port == wish.port && link->access == wish.access;
    if (same && wish.seconds == 0 && link->expires_at_ms == 0) co_return *link;
  }
  if (good >= PreviewLinks::kMostOfSandbox) {
    co_return fail(ErrorCode::ResourceExhausted, "a sandbox has at most " +
                                                     std::to_string(PreviewLinks::kMostOfSandbox) +
                                                     " preview links; remove some");
  }
  PreviewLink link{.id = random_id("pv-", 16),
                   .tenant = record.owner.tenant,
                   .sandbox = record.id,
                   .generation = record.generation,
                   .port = wish.port,
                   .access = wish.access,
                   .created_at_ms = now};
  // In whole seconds, as its tokens count.
  if (wish.seconds != 0) link.expires_at_ms = ((now + 999) / 1000 + wish.seconds) * 1000;
  store::Write change;
  change.put_documents.push_back(PreviewLinks::document(link));
  change.events.push_back(event_of_link(link, "preview.created"));
  ATOLL_CO_TRY(co_await write(std::move(change)));
  previews_.add(link);
  co_return link;
}

Task<Result<void>> Manager::remove_preview(SandboxPtr sandbox, std::string id) {
  auto lock = co_await sandbox->lifecycle.lock();
  const PreviewLink* found = previews_.find(id);
  if (found == nullptr || found->sandbox != sandbox->record.id) {
    co_return fail(ErrorCode::NotFound, "the sandbox has no preview link '" + id + "'");
  }
  store::Write change;
  change.erase_documents.push_back(PreviewLinks::document(*found));
  change.events.push_back(event_of_link(*found, "preview.removed"));
  ATOLL_CO_TRY(co_await write(std::move(change)));
  previews_.remove(id);
  co_return Result<void>();
}

void Manager::erase_previews(const std::string& sandbox, store::Write& change) const {
  for (const PreviewLink* link : previews_.of(sandbox)) {
    change.erase_documents.push_back(PreviewLinks::document(*link));
  }
}

void Manager::forget_previews(const std::string& sandbox) {
  auto all = previews_.of(sandbox);
  std::vector<std::string> ids;
  for (const PreviewLink* link : all) ids.push_back(link->id);
  for (const std::string& id : ids) previews_.remove(id);
}

Task<void> Manager::forget_expired_previews() {
  int64_t now = wall_clock_ms();
  store::Write change;
  std::vector<std::string> over;
  for (const auto& [id, link] : previews_.all()) {
    if (!link.expired(now) && index_.find(link.sandbox) != nullptr) continue;
    change.erase_documents.push_back(PreviewLinks::document(link));
    over.push_back(id);
  }
  if (over.empty()) co_return;
  auto erased = co_await write(std::move(change));
  if (!erased) {
    log(LogLevel::Warning, "cannot forget old links", {{"error", erased.error().message()}});
    co_return;
  }
  for (const std::string& id : over) previews_.remove(id);
}

Task<Result<std::shared_ptr<SandboxHandle>>> Manager::handle_for_traffic(SandboxPtr sandbox) {
  const Record& record = sandbox->record;
  if (record.status == Status::Paused && record.spec.auto_resume) {
    ATOLL_CO_TRY(co_await resume(sandbox));
    // While it slept it had no end.
    if (record.spec.at_lifetime == AtLifetime::Pause && record.spec.max_lifetime_s == 0) {
      int64_t ran_s = std::max<int64_t>(0, BootTime::now().ms - record.since.ms) / 1000;
      Changes changes;
      changes.max_lifetime_s = static_cast<uint32_t>(ran_s) + kWokenSeconds;
      ATOLL_CO_TRY(co_await update(sandbox, Caller(), std::move(changes)));
    }
  }
  ATOLL_CO_TRY(co_await session(sandbox));
  if (sandbox->handle == nullptr) co_return fail(ErrorCode::InvalidState, "the sandbox has ended");
  co_return sandbox->handle;
}

Task<Result<UniqueFd>> Manager::dial(SandboxPtr sandbox, uint16_t port) {
  constexpr std::chrono::milliseconds kLimit{10'000};
  ATOLL_CO_ASSIGN(auto handle, co_await handle_for_traffic(sandbox));
  note_activity(*sandbox);
  co_return co_await handle->dial(port, kLimit);
}

}  // namespace atl::sandbox
