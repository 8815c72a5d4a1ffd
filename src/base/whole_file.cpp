#include "base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace atl {

Result<std::string> read_whole_file(const std::string& path, size_t limit) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return fail_errno("open", path);
  std::string bytes;
  char block[64 << 10];
  for (;;) {
    ssize_t size = read(file.get(), block, sizeof block);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("read", path);
    if (size == 0) return bytes;
    bytes.append(block, static_cast<size_t>(size));
    if (bytes.size() > limit) {
      return fail(ErrorCode::TooLarge, path + " has more than " + std::to_string(limit) + " bytes");
    }
  }
}

}  // namespace atl
