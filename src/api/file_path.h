#pragma once

#include <string>
#include <string_view>

#include "http/message.h"

namespace atl::api {

// No NUL byte, at most 4095 bytes.
Result<void> check_path(std::string_view path, std::string_view field);
// The {path...} of a route, as an absolute path.
Result<std::string> path_of(const http::Request& request);
// Octal digits: "0644", "755".
Result<uint32_t> parse_mode(std::string_view text);

}  // namespace atl::api
