#include "auth/runtime_token.h"

#include "auth/digest.h"
#include "base/base64url.h"

namespace atl::auth {

std::string runtime_token(const SecretKey& key, std::string_view sandbox,
                          std::string_view generation) {
  // The length keeps the two parts from running into each other.
  std::string message = std::to_string(sandbox.size()) + ":";
  message.append(sandbox).append(generation);
  return "rt-" + base64url_encode(as_text(hmac_sha256(key, message)));
}

bool is_runtime_token(std::string_view presented, const SecretKey& key, std::string_view sandbox,
                      std::string_view generation) {
  return same_secret(presented, runtime_token(key, sandbox, generation));
}

}  // namespace atl::auth
