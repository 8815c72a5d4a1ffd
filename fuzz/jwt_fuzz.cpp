// Tokens as a client could send them. The first byte chooses: a token as it is, which must be one
// that was signed here if it passes, or header and payload (divided by a newline) that are signed
// first, so that what stands behind the signature is reached as well. Base64url must have one
// spelling throughout.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "auth/jwt.h"
#include "auth/scoped_token.h"
#include "base/base64url.h"

namespace {

using namespace atl::auth;

constexpr int64_t kNowMs = 1'767'323'045'678;

void require(bool condition) {
  if (!condition) abort();
}

const SigningKey& key() {
  static const SigningKey made = [] {
    const std::string seed(SecretKey::kSize, 'k');
    return SigningKey::from_seed(
        SecretKey(SecretKey::Bytes(reinterpret_cast<const uint8_t*>(seed.data()), seed.size())));
  }();
  return made;
}

const KeySet& keys() {
  static const KeySet made = [] {
    KeySet set;
    set.add(key().verify_key());
    return set;
  }();
  return made;
}

void check_base64(std::string_view text) {
  if (auto bytes = atl::base64url_decode(text)) require(atl::base64url_encode(*bytes) == text);
  require(atl::base64url_decode(atl::base64url_encode(text)) == text);
}

// Ed25519 signs the same text always the same, so a token that passes can be made again.
void check_token(std::string_view token) {
  if (!verify_jwt(token, keys())) return;
  std::string_view signed_text = token.substr(0, token.rfind('.'));
  std::string again =
      std::string(signed_text) + "." + atl::base64url_encode(key().sign(signed_text));
  require(token == again);
}

void check_signed(std::string_view input) {
  size_t newline = std::min(input.find('\n'), input.size());
  std::string_view payload = input.substr(std::min(newline + 1, input.size()));
  std::string text =
      atl::base64url_encode(input.substr(0, newline)) + "." + atl::base64url_encode(payload);
  std::string token = text + "." + atl::base64url_encode(key().sign(text));
  auto scoped = verify_scoped_token(token, keys(), kNowMs);
  if (!scoped) return;
  require(token.size() <= kMaxTokenBytes);
  require(scoped->expires_at_ms > kNowMs && scoped->issued_at_ms <= kNowMs + 30'000);
  require(scoped->expires_at_ms - scoped->issued_at_ms <= 15 * 60'000);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  check_base64(input);
  if (data[0] == 't') {
    check_token(input);
  } else {
    check_signed(input);
  }
  return 0;
}
