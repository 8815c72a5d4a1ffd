// Compact JWS with EdDSA over Ed25519, and nothing else (RFC 7519, 8037, 8725).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "auth/signing_key.h"
#include "base/result.h"
#include "http/json.h"

namespace atl::auth {

inline constexpr size_t kMaxTokenBytes = 4096;

// `claims` is the text of a JSON object. TooLarge where the token would exceed kMaxTokenBytes.
Result<std::string> sign_jwt(const SigningKey& key, std::string_view claims);

// The claims, once the signature is known to be good. The algorithm is a constant, the key is found
// in `keys` by an exact "kid" and nowhere else, and a header with anything but alg, typ and kid is
// refused. One token has one spelling. Failures are Unauthenticated and repeat nothing of the
// token.
Result<http::JsonDocument> verify_jwt(std::string_view token, const KeySet& keys);

struct ClaimRules {
  std::string_view issuer;
  std::string_view audience;
  int64_t now_s = 0;
  int64_t max_lifetime_s = 0;
  int64_t grace_s = 0;  // how long ago it may have expired
};
struct TokenTimes {
  int64_t issued_at_s = 0;
  int64_t expires_at_s = 0;
};

// Takes iss, aud, iat, exp and nbf (which may be absent) out of the claims. A token from the future
// is refused beyond 30 s of clock difference, an old one the moment it expires, and one that was
// made to live longer than allowed always. Unauthenticated; "the token has expired" only for that.
Result<TokenTimes> check_registered_claims(http::JsonObjectReader& claims, const ClaimRules& rules);

}  // namespace atl::auth
