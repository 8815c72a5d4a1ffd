#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "auth/signing_key.h"
#include "base/result.h"

namespace atl::auth {

enum class TokenScope { Session, Project, ReadOnly };
// As the API spells it: "session", "project", "read-only".
std::string_view to_string(TokenScope scope);
std::optional<TokenScope> parse_token_scope(std::string_view text);

// A short-lived token for one sandbox's runtime routes, safe to hand to a browser.
struct ScopedToken {
  std::string tenant;
  std::string sandbox;
  std::string generation;  // of the sandbox: deleting, recreating or resuming it ends its tokens
  TokenScope scope = TokenScope::Session;
  std::optional<std::string> session;  // only this terminal or connection
  std::string id;                      // for a list of revoked ones
  int64_t issued_at_ms = 0;
  int64_t expires_at_ms = 0;

  // PermissionDenied for another sandbox, Unauthenticated for another generation of this one.
  Result<void> check_target(std::string_view sandbox_id, std::string_view current_generation) const;
};

struct ScopedTokenRequest {
  std::string tenant;
  std::string sandbox;
  std::string generation;
  TokenScope scope = TokenScope::Session;
  std::optional<std::string> session = {};
  std::optional<int64_t> ttl_minutes = {};  // 5; less than 1 is 1, more than 15 is 15
};

struct MintedToken {
  std::string text;
  ScopedToken token;
};

// InvalidArgument for an empty or overlong part.
Result<MintedToken> mint_scoped_token(const SigningKey& key, const ScopedTokenRequest& request,
                                      int64_t now_ms);
// Unauthenticated, with "the token has expired" only for one that was good before. Whether the
// sandbox still has this generation is for check_target(). One that expired less than `grace_ms`
// ago passes.
Result<ScopedToken> verify_scoped_token(std::string_view text, const KeySet& keys, int64_t now_ms,
                                        int64_t grace_ms = 0);

}  // namespace atl::auth
