// The kinds of bearer that are good for one sandbox only: scoped tokens, short-lived and verifiable
// by anybody who has the public key; the runtime bearer that a sandbox's owner reads in its
// `connection`; and those for its ports.
#pragma once

#include "auth/digest.h"
#include "auth/master_key.h"
#include "auth/preview_token.h"
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

  std::string preview_token(const auth::PreviewGrant& grant, auth::PreviewPlace place,
                            int64_t expires_at_s) const {
    return auth::preview_token(preview_key_, grant, place, expires_at_s);
  }
  auth::PreviewVerdict check_preview_token(std::string_view token, const auth::PreviewGrant& grant,
                                           auth::PreviewPlace place, int64_t now_s) const {
    return auth::check_preview_token(token, preview_key_, grant, place, now_s);
  }
  std::string traffic_token(const std::string& sandbox, const std::string& generation) const {
    return auth::traffic_token(preview_key_, sandbox, generation);
  }
  bool is_traffic_token(std::string_view text, const std::string& sandbox,
                        const std::string& generation) const {
    return auth::same_secret(text, traffic_token(sandbox, generation));
  }

  // Whether a text is, or was, a credential of this server's, or has the form of one: then it is
  // for nobody else's eyes.
  bool is_own_credential(std::string_view text, int64_t now_ms) const;

 private:
  auth::SigningKey signing_;
  auth::KeySet verifying_;
  auth::SecretKey runtime_key_;
  auth::SecretKey preview_key_;
};

}  // namespace atl::account
