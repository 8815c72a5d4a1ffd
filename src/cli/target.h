#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::cli {

// "web:/etc/hosts", "./file" or "-".
struct Target {
  enum class Kind { Local, Remote, Standard } kind = Kind::Local;
  std::string sandbox;  // Remote
  std::string path;

  bool remote() const { return kind == Kind::Remote; }
};

// A colon before the first slash makes it remote, so "./a:b" is a local file. A remote path may be
// relative: it starts at /workspace, and so does an empty one.
Result<Target> parse_target(std::string_view text);
// Fails for what is not remote, naming the form.
Result<Target> parse_remote(std::string_view text);

// "c" of "/a/b/c/"; empty for "/" and for what ends in "." or "..".
std::string last_name(std::string_view path);
std::string join_path(std::string_view dir, std::string_view name);

}  // namespace atl::cli
