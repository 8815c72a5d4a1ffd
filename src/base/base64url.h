// base64url without padding (RFC 4648 section 5), as tokens and keys spell bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace atl {

std::string base64url_encode(std::string_view bytes);

// Strict: every text stands for other bytes than every other. Padding, foreign characters,
// impossible lengths and set bits beyond the last byte are refused.
std::optional<std::string> base64url_decode(std::string_view text);

}  // namespace atl
