#include "image/digest.h"

namespace atl::image {

bool is_sha256_hex(std::string_view text) {
  if (text.size() != 64) return false;
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<std::string> parse_digest(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  if (text.starts_with(kPrefix) && is_sha256_hex(text.substr(kPrefix.size()))) {
    return std::string(text.substr(kPrefix.size()));
  }
  return fail(ErrorCode::InvalidArgument,
              "'" + std::string(text.substr(0, 100)) + "' is not a digest of the form sha256:HEX");
}

}  // namespace atl::image
