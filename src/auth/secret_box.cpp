#include "auth/secret_box.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include <memory>

#include "base/random_bytes.h"

namespace atl::auth {
namespace {

constexpr char kVersion = 1;
constexpr size_t kNonceBytes = 12;
constexpr size_t kTagBytes = 16;
constexpr size_t kHeadBytes = 1 + kNonceBytes;

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

Cipher new_cipher() {
  Cipher cipher(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  if (cipher == nullptr) abort();
  return cipher;
}

const uint8_t* raw(std::string_view bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}
int count(size_t size) { return static_cast<int>(size); }

// Each part with its length in front, so that no two names give the same bytes.
std::string associated_data(const SecretName& name) {
  std::string data(1, kVersion);
  for (std::string_view part : {name.tenant, name.name}) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      data.push_back(static_cast<char>(part.size() >> shift & 0xFF));
    }
    data.append(part);
  }
  return data;
}

}  // namespace

Result<std::string> SecretBox::seal(std::string_view plain, const SecretName& name) const {
  if (plain.size() > kMaxPlainBytes) {
    return fail(ErrorCode::TooLarge, "a secret has at most 1 MiB");
  }
  std::string sealed(kHeadBytes + plain.size() + kTagBytes, '\0');
  auto* out = reinterpret_cast<uint8_t*>(sealed.data());
  sealed[0] = kVersion;
  random_bytes(out + 1, kNonceBytes);
  std::string bound = associated_data(name);
  Cipher cipher = new_cipher();
  int size = 0, rest = 0;
  uint8_t* text = out + kHeadBytes;
  bool done =
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key_.bytes().data(), out + 1) ==
          1 &&
      EVP_EncryptUpdate(cipher.get(), nullptr, &size, raw(bound), count(bound.size())) == 1 &&
      EVP_EncryptUpdate(cipher.get(), text, &size, raw(plain), count(plain.size())) == 1 &&
      EVP_EncryptFinal_ex(cipher.get(), text + plain.size(), &rest) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, count(kTagBytes),
                          text + plain.size()) == 1;
  if (!done || size_t(size) != plain.size()) return fail(ErrorCode::Internal, "cannot encrypt");
  return sealed;
}

Result<SecretBytes> SecretBox::open(std::string_view sealed, const SecretName& name) const {
  auto refuse = [&] {
    return fail(ErrorCode::Internal,
                "stored secret '" + std::string(name.name) +
                    "' does not open: it was altered, or sealed with another master key");
  };
  if (sealed.size() < kHeadBytes + kTagBytes) return refuse();
  if (sealed[0] != kVersion) {
    return fail(ErrorCode::NotSupported,
                "stored secret '" + std::string(name.name) + "' has an unknown format version");
  }
  std::string_view text = sealed.substr(kHeadBytes, sealed.size() - kHeadBytes - kTagBytes);
  if (text.size() > kMaxPlainBytes) return refuse();
  std::string tag(sealed.substr(sealed.size() - kTagBytes));
  std::string bound = associated_data(name);
  Cipher cipher = new_cipher();
  SecretBytes plain(text.size());
  uint8_t none = 0;  // OpenSSL wants a place to write to even where there is nothing to write
  uint8_t* out = plain.size() == 0 ? &none : plain.data();
  int size = 0, rest = 0;
  bool done =
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key_.bytes().data(),
                         raw(sealed) + 1) == 1 &&
      EVP_DecryptUpdate(cipher.get(), nullptr, &size, raw(bound), count(bound.size())) == 1 &&
      EVP_DecryptUpdate(cipher.get(), out, &size, raw(text), count(text.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, count(kTagBytes), tag.data()) == 1 &&
      EVP_DecryptFinal_ex(cipher.get(), &none, &rest) == 1;
  if (!done) return refuse();
  return plain;
}

}  // namespace atl::auth
