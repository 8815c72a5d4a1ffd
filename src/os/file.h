// Small whole-file reads and writes relative to a directory, as procfs and cgroupfs want them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::os {

Result<void> write_file_at(int dir, const char* path, std::string_view text);
Result<std::string> read_file_at(int dir, const char* path);
Result<UniqueFd> open_dir_at(int dir, const char* path);
// Opens `path` beneath `dir` without following any symbolic link.
Result<UniqueFd> open_beneath(int dir, const char* path, int flags);
Result<void> make_dir_at(int dir, const char* path, unsigned mode);  // fine if it is there
Result<void> write_all(int fd, std::string_view bytes);
int64_t monotonic_us();

}  // namespace atl::os
