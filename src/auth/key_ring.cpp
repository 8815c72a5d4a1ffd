#include "auth/key_ring.h"

#include <algorithm>
#include <tuple>

#include "auth/digest.h"

namespace atl::auth {
namespace {

constexpr size_t kMinChosenBytes = 16;
constexpr size_t kMaxPresentedBytes = 512;

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

}  // namespace

Result<void> KeyRing::add(ApiKey key) {
  ATOLL_TRY(check_key(key));
  if (by_id_.contains(key.id)) {
    return fail(
        Error(ErrorCode::Conflict, "there is already an API key " + key.id).with_field("id"));
  }
  if (by_hash_.contains(key.secret_hash)) {
    return fail(ErrorCode::Conflict, "this API key is already there under another id");
  }
  auto entry = std::make_shared<const ApiKey>(std::move(key));
  by_id_.emplace(entry->id, entry);
  by_hash_.emplace(entry->secret_hash, entry);
  return {};
}

Result<void> KeyRing::add_verbatim(ApiKey key, std::string_view text) {
  if (text.size() < kMinChosenBytes || text.size() > kMaxPresentedBytes || !is_printable(text)) {
    return fail(ErrorCode::InvalidArgument,
                "a chosen API key has 16 to 512 printable ASCII characters without spaces");
  }
  key.secret_hash = sha256_hex(text);
  return add(std::move(key));
}

Result<void> KeyRing::remove(std::string_view id) {
  auto found = by_id_.find(std::string(id));
  if (found == by_id_.end()) return fail(ErrorCode::NotFound, "there is no such API key");
  by_hash_.erase(found->second->secret_hash);
  by_id_.erase(found);
  return {};
}

std::vector<std::shared_ptr<const ApiKey>> KeyRing::list(std::string_view tenant) const {
  std::vector<Entry> keys;
  for (const auto& [id, entry] : by_id_) {
    if (tenant.empty() || entry->tenant == tenant) keys.push_back(entry);
  }
  std::sort(keys.begin(), keys.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a->created_at_ms, a->id) < std::tie(b->created_at_ms, b->id);
  });
  return keys;
}

// By the id where the text has one, else by the hash: to steer that look-up one would have to find
// SHA-256 preimages.
const KeyRing::Entry* KeyRing::candidate(std::string_view presented,
                                         const std::string& hash) const {
  if (std::string_view id = id_in_key(presented); !id.empty()) {
    auto found = by_id_.find(std::string(id));
    if (found != by_id_.end()) return &found->second;
  }
  auto found = by_hash_.find(hash);
  return found == by_hash_.end() ? nullptr : &found->second;
}

Result<std::shared_ptr<const ApiKey>> KeyRing::find(std::string_view presented,
                                                    int64_t now_ms) const {
  static const std::string kNoHash(64, '-');
  auto refuse = [] { return fail(ErrorCode::Unauthenticated, "the API key is not valid"); };
  if (presented.size() > kMaxPresentedBytes) return refuse();
  std::string hash = sha256_hex(presented);
  const Entry* entry = candidate(presented, hash);
  bool right = same_secret(hash, entry == nullptr ? kNoHash : (*entry)->secret_hash);
  if (!right || entry == nullptr) return refuse();
  if ((*entry)->expires_at_ms != 0 && now_ms >= (*entry)->expires_at_ms) {
    return fail(ErrorCode::Unauthenticated, "the API key has expired; ask for a new one");
  }
  return *entry;
}

}  // namespace atl::auth
