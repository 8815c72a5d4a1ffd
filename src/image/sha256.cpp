#include "image/sha256.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include <array>

namespace atl::image {

// SHA-256 of OpenSSL's default provider fails only for want of memory; there is no way on from
// that, and a wrong digest must never leave this class.
static void check(int result) {
  if (result != 1) abort();
}

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  check(context_ != nullptr ? 1 : 0);
  check(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::update(const void* data, size_t size) {
  check(EVP_DigestUpdate(context_.get(), data, size));
}

std::string Sha256::finish() {
  static constexpr char kHex[] = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes;
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(context_.get(), bytes.data(), &size));
  std::string hex;
  for (unsigned int i = 0; i < size; i++) {
    hex.push_back(kHex[bytes[i] >> 4]);
    hex.push_back(kHex[bytes[i] & 15]);
  }
  return hex;
}

}  // namespace atl::image
