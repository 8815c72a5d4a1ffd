// Tokens of any shape, for the tests that must see them refused.
#pragma once

#include <string>
#include <string_view>

#include "auth/signing_key.h"
#include "base/base64url.h"

namespace atl::auth {

inline std::string jose_header(const SigningKey& key) {
  return R"({"alg":"EdDSA","typ":"JWT","kid":")" + key.kid() + "\"}";
}

// Signs whatever the header says.
inline std::string forge(const SigningKey& key, std::string_view header, std::string_view payload) {
  std::string text = base64url_encode(header) + "." + base64url_encode(payload);
  return text + "." + base64url_encode(key.sign(text));
}

inline KeySet key_set(const SigningKey& key) {
  KeySet keys;
  keys.add(key.verify_key());
  return keys;
}

}  // namespace atl::auth
