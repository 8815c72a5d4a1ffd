// Ed25519 keys (RFC 8032) as tokens use them: named by their RFC 7638 thumbprint, published as JWK.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "auth/secret_bytes.h"
#include "base/result.h"

struct evp_pkey_st;

namespace atl::auth {

inline constexpr size_t kSignatureBytes = 64;

struct FreeEvpKey {
  void operator()(evp_pkey_st* key) const;
};
using EvpKey = std::unique_ptr<evp_pkey_st, FreeEvpKey>;

// The public half.
class VerifyKey {
 public:
  // InvalidArgument unless there are 32 bytes.
  static Result<VerifyKey> from_public(std::string_view bytes);

  const std::string& kid() const { return kid_; }
  // {"kty":"OKP","crv":"Ed25519","x":..,"kid":..,"use":"sig","alg":"EdDSA"}
  std::string jwk_json() const;
  bool verify(std::string_view message, std::string_view signature) const;

 private:
  VerifyKey(EvpKey key, std::string x);

  EvpKey key_;
  std::string x_;  // base64url of the public key
  std::string kid_;
};

class SigningKey {
 public:
  static SigningKey generate() { return from_seed(SecretKey::random()); }
  // The same seed gives the same key.
  static SigningKey from_seed(const SecretKey& seed);

  const std::string& kid() const { return kid_; }
  std::string public_bytes() const;
  VerifyKey verify_key() const;
  std::string sign(std::string_view message) const;

 private:
  explicit SigningKey(EvpKey key);

  EvpKey key_;
  std::string kid_;
};

// The keys that tokens may be signed with: the present one and those still honoured after a
// rotation. Few, so they are searched one by one.
class KeySet {
 public:
  void add(VerifyKey key) { keys_.push_back(std::move(key)); }
  const VerifyKey* find(std::string_view kid) const;
  // {"keys":[..]}
  std::string jwks_json() const;

 private:
  std::vector<VerifyKey> keys_;
};

}  // namespace atl::auth
