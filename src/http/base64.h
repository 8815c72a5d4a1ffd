#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace atl::http {

std::string base64_encode(std::string_view bytes);
// Strict: the standard alphabet with its padding, nothing else.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace atl::http
