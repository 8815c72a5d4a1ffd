// The API keys of all tenants, kept in the database and looked up in memory.
#pragma once

#include "auth/api_key.h"
#include "auth/key_ring.h"
#include "store/store.h"

namespace atl::account {

using KeyPtr = std::shared_ptr<const auth::ApiKey>;

class Keys {
 public:
  explicit Keys(store::Store& store) : store_(store) {}

  Result<void> load();
  // The administrator's key that stands in a file of the installation; never stored.
  Result<void> add_bootstrap(const std::string& text);

  Result<KeyPtr> find(std::string_view presented, int64_t now_ms) const {
    return ring_.find(presented, now_ms);
  }
  // Empty tenant: all.
  std::vector<KeyPtr> list(const std::string& tenant) const { return ring_.list(tenant); }
  // The text is told once and never again.
  Task<Result<auth::MintedKey>> create(auth::KeyRequest request, int64_t now_ms);
  Task<Result<void>> remove(std::string tenant, std::string id);

 private:
  store::Store& store_;
  auth::KeyRing ring_;
};

}  // namespace atl::account
