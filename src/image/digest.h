#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::image {

// 64 lower-case hex digits: safe as a file name, and as an id of the launcher's.
bool is_sha256_hex(std::string_view text);

// The hex digits of "sha256:...", the one kind of digest that images are taken by.
Result<std::string> parse_digest(std::string_view text);

}  // namespace atl::image
