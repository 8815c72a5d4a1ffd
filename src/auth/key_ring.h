#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "auth/api_key.h"

namespace atl::auth {

// All API keys, in memory. A key that was found stays valid for the request that holds it, whatever
// is removed meanwhile. For one thread.
class KeyRing {
 public:
  // InvalidArgument where check_key() refuses, Conflict for an id or secret that is already there.
  Result<void> add(ApiKey key);
  // A key whose text somebody chose: at least 16 printable characters. Sets the hash.
  Result<void> add_verbatim(ApiKey key, std::string_view text);
  // NotFound where there is none.
  Result<void> remove(std::string_view id);
  // One tenant's keys, or everybody's where `tenant` is empty; oldest first.
  std::vector<std::shared_ptr<const ApiKey>> list(std::string_view tenant = {}) const;

  // In constant time as to how much of a key was right. Unauthenticated, in the same words for
  // unknown and wrong keys; only who has the right one learns that it has expired.
  Result<std::shared_ptr<const ApiKey>> find(std::string_view presented, int64_t now_ms) const;

 private:
  using Entry = std::shared_ptr<const ApiKey>;
  const Entry* candidate(std::string_view presented, const std::string& hash) const;

  std::unordered_map<std::string, Entry> by_id_;
  std::unordered_map<std::string, Entry> by_hash_;
};

}  // namespace atl::auth
