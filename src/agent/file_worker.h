// Serves file operations on one connection, one after another, in a process of its own: blocking
// code, killable, with the rights of the user it works for.
#pragma once

#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "wire/file_messages.h"
#include "wire/frame.h"

namespace atl::agent {

struct FileDefaults {
  std::string workdir;
  std::string user;  // where a request names none
};
void run_file_worker(UniqueFd socket, wire::FrameBuffer pending, const FileDefaults& defaults,
                     const wire::FileRequest& first);

// Relative paths start at the working directory; an empty path is the working directory.
std::string resolve_path(std::string_view workdir, std::string_view path);

}  // namespace atl::agent
