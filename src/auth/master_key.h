#pragma once

#include <string>
#include <string_view>

#include "auth/secret_bytes.h"
#include "base/result.h"

namespace atl::auth {

// What subkeys are for. A new use takes a new label: no key ever serves two.
inline constexpr std::string_view kSecretsLabel = "secrets";
inline constexpr std::string_view kPoliciesLabel = "network-policies";
inline constexpr std::string_view kTokenSigningLabel = "token-signing";
inline constexpr std::string_view kRuntimeTokenLabel = "runtime-token";
inline constexpr std::string_view kPreviewLabel = "preview";

// The one secret from which all others derive: 32 raw bytes in a file of mode 0600. Whoever has the
// file can read every stored secret and sign every token; without it none can be read again.
class MasterKey {
 public:
  // Reads the file, or makes it where there is none: durably, whole or not at all, and once however
  // many start together. Refuses, saying what to do, a file that is no regular file, has another
  // size, belongs to another account or is accessible to group or others.
  static Result<MasterKey> load_or_create(const std::string& path);
  explicit MasterKey(SecretKey key) : key_(std::move(key)) {}

  // HKDF-SHA256. The same label gives the same key in every process and after every restart.
  SecretKey derive(std::string_view label) const;

 private:
  SecretKey key_;
};

}  // namespace atl::auth
