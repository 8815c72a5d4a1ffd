// Work on a directory tree whose contents are hostile: always relative to a descriptor, never
// through a symbolic link.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::image {

// Every name in `dir` but "." and "..".
Result<std::vector<std::string>> list_directory(int dir);

// Removes whatever `name` is, with everything below it. A missing name is no error.
Result<void> remove_tree(int parent, const std::string& name);

struct Attributes {
  mode_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

enum class Existing { Keep, Reset };

// A real directory at `name`, replacing anything else that is there. `existing` says whether a
// directory that was there already gets these attributes too.
Result<UniqueFd> ensure_directory(int parent, const std::string& name, const Attributes& attributes,
                                  Existing existing);

// Opens `path` as a directory, creating it and its parents (mode 0700) where missing.
Result<UniqueFd> open_or_create_directory(const std::string& path);

// Writes `name` so that a reader, or a machine that comes back from a power cut, sees the old
// content or the new content in full.
Result<void> write_file_durably(int dir, const std::string& name, const std::string& content);

}  // namespace atl::image
