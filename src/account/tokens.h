// The two kinds of bearer that are good for one sandbox only: scoped tokens, short-lived and
// verifiable by anybody who has the public key, and the runtime bearer that a sandbox's owner reads
// in its `connection`.
#pragma once

#include "auth/master_key.h"
#include "auth/runtime_token.h"
#include "auth/scoped_token.h"

namespace atl::account {

class Tokens {
 public:
  static constexpr std::string_view kRuntimePrefix = "rt-";

  explicit Tokens(const auth::MasterKey& master);

  Result<auth::MintedToken> mint(const auth::ScopedTokenRequest& request, int64_t now_ms) const {
    return auth::mint_scoped_token(signing_, request, now_ms);
  }
  Result<auth::ScopedToken> verify(std::string_view token, int64_t now_ms) const {
    return auth::verify_scoped_token(token, verifying_, now_ms);
  }
  // A new token like `token`, which may have expired within the last quarter of an hour.
  Result<auth::MintedToken> refresh(std::string_view token, const std::string& sandbox,
                                    const std::string& generation, int64_t now_ms) const;
  std::string jwks() const { return verifying_.jwks_json(); }

  std::string runtime_token(const std::string& sandbox, const std::string& generation) const {
    return auth::runtime_token(runtime_key_, sandbox, generation);
  }
  bool is_runtime_token(std::string_view text, const std::string& sandbox,
                        const std::string& generation) const {
    return auth::is_runtime_token(text, runtime_key_, sandbox, generation);
  }

 private:
  auth::SigningKey signing_;
  auth::KeySet verifying_;
  auth::SecretKey runtime_key_;
};

}  // namespace atl::account
