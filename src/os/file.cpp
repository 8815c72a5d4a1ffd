#include "os/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "os/syscalls.h"

namespace atl::os {

Result<void> write_file_at(int dir, const char* path, std::string_view text) {
  UniqueFd fd(openat(dir, path, O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("open", path);
  ssize_t size = write(fd.get(), text.data(), text.size());
  if (size != static_cast<ssize_t>(text.size())) return fail_errno("write", path);
  return {};
}

Result<std::string> read_file_at(int dir, const char* path) {
  UniqueFd fd(openat(dir, path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("open", path);
  std::string text;
  char buffer[4096];
  for (;;) {
    ssize_t size = read(fd.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("read", path);
    if (size == 0) return text;
    text.append(buffer, static_cast<size_t>(size));
  }
}

Result<UniqueFd> open_dir_at(int dir, const char* path) {
  UniqueFd fd(openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("open directory", path);
  return fd;
}

Result<UniqueFd> open_beneath(int dir, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  UniqueFd fd = openat2(dir, path, how);
  if (!fd.valid()) return fail_errno("open", path);
  return fd;
}

Result<void> make_dir_at(int dir, const char* path, unsigned mode) {
  if (mkdirat(dir, path, mode) != 0 && errno != EEXIST) return fail_errno("mkdir", path);
  return {};
}

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t size = write(fd, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("write");
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return {};
}

int64_t monotonic_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

}  // namespace atl::os
