#pragma once

#include <string>
#include <string_view>

namespace atl {

// Appends `text` as a JSON string literal. Bytes that are not valid UTF-8 become U+FFFD, so the
// output is valid JSON whatever a sandbox printed.
void append_json_string(std::string& out, std::string_view text);

// Replaces every ill-formed UTF-8 sequence with U+FFFD.
std::string to_valid_utf8(std::string_view text);
bool is_valid_utf8(std::string_view text);

}  // namespace atl
