#pragma once

#include <string>
#include <string_view>

#include "auth/secret_bytes.h"

namespace atl::auth {

// The bearer of one life of one sandbox, for its runtime routes: "rt-" and 43 characters. Nothing
// is stored: the same key, sandbox and generation always give the same token, and a new generation
// ends the old one. `key` is MasterKey::derive(kRuntimeTokenLabel).
std::string runtime_token(const SecretKey& key, std::string_view sandbox,
                          std::string_view generation);

// In constant time.
bool is_runtime_token(std::string_view presented, const SecretKey& key, std::string_view sandbox,
                      std::string_view generation);

}  // namespace atl::auth
