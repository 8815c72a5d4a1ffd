#include "api/file_path.h"

#include <charconv>

namespace atl::api {

Result<void> check_path(std::string_view path, std::string_view field) {
  if (path.size() <= 4095 && path.find('\0') == path.npos) return {};
  return fail(Error(ErrorCode::InvalidArgument, "a path has no NUL byte and at most 4095 bytes")
                  .with_field(field));
}

Result<std::string> path_of(const http::Request& request) {
  std::string path = "/" + request.param("path");
  // "/fs/list//etc" and "/fs/list/etc" are the same place.
  size_t slashes = path.find_first_not_of('/');
  if (slashes == path.npos) return std::string("/");
  path.erase(0, slashes - 1);
  ATOLL_TRY(check_path(path, "path"));
  return path;
}

Result<uint32_t> parse_mode(std::string_view text) {
  uint32_t mode = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (error == std::errc() && end == text.data() + text.size() && mode <= 07777) return mode;
  return fail(Error(ErrorCode::InvalidArgument, "a mode is octal, like 0644").with_field("mode"));
}

}  // namespace atl::api
