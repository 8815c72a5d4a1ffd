#include "auth/digest.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/sha.h>
#include <stdlib.h>

#include <memory>

namespace atl::auth {
namespace {

// These fail only for want of memory. There is no way on from that, and a wrong digest must never
// be compared with anything.
void require(bool done) {
  if (!done) abort();
}

const uint8_t* raw(std::string_view bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

OSSL_PARAM octets(const char* name, std::string_view bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(bytes.data()), bytes.size());
}

}  // namespace

Digest sha256(std::string_view bytes) {
  Digest digest;
  require(SHA256(raw(bytes), bytes.size(), digest.data()) != nullptr);
  return digest;
}

std::string sha256_hex(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * sizeof(Digest));
  for (uint8_t byte : sha256(bytes)) {
    hex.push_back(kHex[byte >> 4]);
    hex.push_back(kHex[byte & 15]);
  }
  return hex;
}

Digest hmac_sha256(const SecretKey& key, std::string_view message) {
  Digest digest;
  unsigned int size = 0;
  require(HMAC(EVP_sha256(), key.bytes().data(), SecretKey::kSize, raw(message), message.size(),
               digest.data(), &size) != nullptr);
  require(size == digest.size());
  return digest;
}

void hkdf_sha256(const HkdfInput& input, std::span<uint8_t> out) {
  std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr),
                                                        EVP_KDF_free);
  require(kdf != nullptr);
  std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(EVP_KDF_CTX_new(kdf.get()),
                                                                    EVP_KDF_CTX_free);
  require(context != nullptr);
  char hash[] = "SHA256";
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, hash, 0),
      octets(OSSL_KDF_PARAM_KEY, input.secret),
      octets(OSSL_KDF_PARAM_SALT, input.salt),
      octets(OSSL_KDF_PARAM_INFO, input.info),
      OSSL_PARAM_construct_end(),
  };
  require(EVP_KDF_derive(context.get(), out.data(), out.size(), parameters) == 1);
}

std::string_view as_text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_lower_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace atl::auth
