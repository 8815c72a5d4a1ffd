#include "auth/signing_key.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "auth/digest.h"
#include "base/base64url.h"

namespace atl::auth {
namespace {

constexpr size_t kPublicBytes = 32;

using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

// Fails only for want of memory.
void require(bool done) {
  if (!done) abort();
}

const uint8_t* raw(std::string_view bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

DigestContext new_context() {
  DigestContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  require(context != nullptr);
  return context;
}

// RFC 7638: SHA-256 over the required members only, in this order, without spaces.
std::string thumbprint(std::string_view x) {
  std::string members = R"({"crv":"Ed25519","kty":"OKP","x":")" + std::string(x) + "\"}";
  return base64url_encode(as_text(sha256(members)));
}

}  // namespace

void FreeEvpKey::operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }

VerifyKey::VerifyKey(EvpKey key, std::string x)
    : key_(std::move(key)), x_(std::move(x)), kid_(thumbprint(x_)) {}

Result<VerifyKey> VerifyKey::from_public(std::string_view bytes) {
  if (bytes.size() != kPublicBytes) {
    return fail(ErrorCode::InvalidArgument, "an Ed25519 public key has 32 bytes");
  }
  EvpKey key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw(bytes), bytes.size()));
  require(key != nullptr);
  return VerifyKey(std::move(key), base64url_encode(bytes));
}

std::string VerifyKey::jwk_json() const {
  return R"({"kty":"OKP","crv":"Ed25519","x":")" + x_ + R"(","kid":")" + kid_ +
         R"(","use":"sig","alg":"EdDSA"})";
}

bool VerifyKey::verify(std::string_view message, std::string_view signature) const {
  if (signature.size() != kSignatureBytes) return false;
  DigestContext context = new_context();
  require(EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1);
  return EVP_DigestVerify(context.get(), raw(signature), signature.size(), raw(message),
                          message.size()) == 1;
}

SigningKey::SigningKey(EvpKey key) : key_(std::move(key)), kid_(verify_key().kid()) {}

SigningKey SigningKey::from_seed(const SecretKey& seed) {
  EvpKey key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.bytes().data(),
                                          SecretKey::kSize));
  require(key != nullptr);
  return SigningKey(std::move(key));
}

std::string SigningKey::public_bytes() const {
  std::string bytes(kPublicBytes, '\0');
  size_t size = bytes.size();
  require(EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<uint8_t*>(bytes.data()),
                                      &size) == 1);
  return bytes;
}

VerifyKey SigningKey::verify_key() const { return VerifyKey::from_public(public_bytes()).value(); }

std::string SigningKey::sign(std::string_view message) const {
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  DigestContext context = new_context();
  require(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1);
  require(EVP_DigestSign(context.get(), reinterpret_cast<uint8_t*>(signature.data()), &size,
                         raw(message), message.size()) == 1);
  return signature;
}

const VerifyKey* KeySet::find(std::string_view kid) const {
  for (const VerifyKey& key : keys_) {
    if (key.kid() == kid) return &key;
  }
  return nullptr;
}

std::string KeySet::jwks_json() const {
  std::string out = "{\"keys\":[";
  for (const VerifyKey& key : keys_) {
    if (&key != &keys_.front()) out.push_back(',');
    out.append(key.jwk_json());
  }
  return out + "]}";
}

}  // namespace atl::auth
