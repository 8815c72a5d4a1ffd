#pragma once

#include <string>
#include <string_view>

#include "auth/secret_bytes.h"
#include "base/result.h"

namespace atl::auth {

// Whose secret it is. Bound to the sealed text: one tenant's row copied over another's, or over
// another name, does not open.
struct SecretName {
  std::string_view tenant;
  std::string_view name;
};

// Secrets at rest: AES-256-GCM. A sealed secret is version (1 byte, 1), nonce (12, random), cipher
// text, tag (16). Random nonces are safe for 2^32 seals with one key.
class SecretBox {
 public:
  static constexpr size_t kMaxPlainBytes = 1 << 20;

  explicit SecretBox(SecretKey key) : key_(std::move(key)) {}

  // TooLarge beyond kMaxPlainBytes.
  Result<std::string> seal(std::string_view plain, const SecretName& name) const;
  // NotSupported for another version. Internal where one bit of text, name or key is not what it
  // was when sealed; nothing of the plain text is then given out.
  Result<SecretBytes> open(std::string_view sealed, const SecretName& name) const;

 private:
  SecretKey key_;
};

}  // namespace atl::auth
