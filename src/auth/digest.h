#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "auth/secret_bytes.h"

namespace atl::auth {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view bytes);
// 64 lower-case digits.
std::string sha256_hex(std::string_view bytes);
Digest hmac_sha256(const SecretKey& key, std::string_view message);

struct HkdfInput {
  std::string_view secret;
  std::string_view salt;
  std::string_view info;
};
// RFC 5869 with SHA-256; fills `out`, which has 1 to 8160 bytes.
void hkdf_sha256(const HkdfInput& input, std::span<uint8_t> out);

std::string_view as_text(std::span<const uint8_t> bytes);
// 0-9a-f only.
bool is_lower_hex(std::string_view text);

// In a time that depends on the sizes alone.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace atl::auth
