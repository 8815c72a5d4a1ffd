#include "store/data_lock.h"

#include <fcntl.h>
#include <sys/file.h>

namespace atl::store {

static std::string lock_path(const std::string& data_dir) { return data_dir + "/lock"; }

Result<UniqueFd> lock_data_dir(const std::string& data_dir) {
  std::string path = lock_path(data_dir);
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return fail_errno("open", path);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorCode::Conflict, "another atoll serve, or a backup, uses " + data_dir +
                                         "; stop it or give another --data-dir");
  }
  return fd;
}

Result<void> name_holder(const UniqueFd& lock, const std::string& socket) {
  std::string line = socket + "\n";
  if (ftruncate(lock.get(), 0) != 0 ||
      pwrite(lock.get(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
    return fail_errno("write", "the lock");
  }
  return {};
}

Result<std::string> holder_of(const std::string& data_dir) {
  std::string path = lock_path(data_dir);
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("open", path);
  char text[512];
  ssize_t size = pread(fd.get(), text, sizeof text, 0);
  if (size < 0) return fail_errno("read", path);
  std::string_view line(text, static_cast<size_t>(size));
  return std::string(line.substr(0, line.find('\n')));
}

}  // namespace atl::store
