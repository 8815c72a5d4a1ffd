// Tenants' secrets: sealed in the database, opened only to be handed to a sandbox. No way leads
// from here to an API answer.
#pragma once

#include <map>

#include "auth/secret_box.h"
#include "store/store.h"

namespace atl::account {

struct SecretInfo {
  std::string tenant;
  std::string name;
  int64_t created_at_ms = 0;
  int64_t updated_at_ms = 0;
};

class Secrets {
 public:
  Secrets(store::Store& store, auth::SecretBox box) : store_(store), box_(std::move(box)) {}

  Result<void> load();
  std::vector<SecretInfo> list(const std::string& tenant) const;
  Result<SecretInfo> info(const std::string& tenant, const std::string& name) const;

  enum class Mode { Create, Update, Either };
  Task<Result<SecretInfo>> put(std::string tenant, std::string name, std::string value, Mode mode,
                               int64_t now_ms);
  Task<Result<void>> remove(std::string tenant, std::string name);

  Result<std::map<std::string, std::string>> open(const std::string& tenant,
                                                  const std::vector<std::string>& names) const;
  Result<std::map<std::string, std::string>> open_all(const std::string& tenant) const;

 private:
  struct Sealed {
    SecretInfo info;
    std::string box;  // as SecretBox seals it
  };
  using Place = std::pair<std::string, std::string>;  // tenant, name

  store::Store& store_;
  auth::SecretBox box_;
  std::map<Place, Sealed> sealed_;
};

}  // namespace atl::account
