#include "cli/target.h"

#include <fmt/format.h>

namespace atl::cli {

Result<Target> parse_target(std::string_view text) {
  Target target;
  if (text.empty()) return fail(ErrorCode::InvalidArgument, "a path must not be empty");
  if (text == "-") {
    target.kind = Target::Kind::Standard;
    return target;
  }
  size_t colon = text.find(':');
  size_t slash = text.find('/');
  if (colon == text.npos || slash < colon) {
    target.path = text;
    return target;
  }
  if (colon == 0) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'{}' has no sandbox before the colon (write SANDBOX:/path, or ./{} "
                            "for a local file)",
                            text, text));
  }
  target.kind = Target::Kind::Remote;
  target.sandbox = text.substr(0, colon);
  target.path = text.substr(colon + 1);
  if (target.path.empty()) target.path = "/workspace";
  return target;
}

Result<Target> parse_remote(std::string_view text) {
  ATOLL_ASSIGN(Target target, parse_target(text));
  if (!target.remote()) {
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("'{}' names no sandbox (write SANDBOX:/path, such as web:/workspace)", text));
  }
  return target;
}

std::string last_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  size_t slash = path.rfind('/');
  std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
  return name == "." || name == ".." ? std::string() : std::string(name);
}

std::string join_path(std::string_view dir, std::string_view name) {
  std::string joined(dir);
  if (!joined.empty() && !joined.ends_with('/')) joined.push_back('/');
  return joined.append(name);
}

}  // namespace atl::cli
