#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <string>

#include "base/random_id.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::cli {

// A file that takes the place of `path` once it is whole and on the disk.
class PendingFile {
 public:
  static Result<PendingFile> create(const std::string& path) {
    PendingFile made(path, path + random_id(".part-", 8));
    made.fd_.reset(open(made.part_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!made.fd_.valid()) return fail_errno("create", path);
    return made;
  }
  PendingFile(PendingFile&&) = default;
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile() {
    if (fd_.valid()) unlink(part_.c_str());
  }

  int fd() const { return fd_.get(); }
  const std::string& part() const { return part_; }
  Result<void> commit() {
    if (fsync(fd_.get()) != 0) return fail_errno("fsync", path_);
    if (rename(part_.c_str(), path_.c_str()) != 0) return fail_errno("rename to", path_);
    fd_.reset();
    size_t slash = path_.rfind('/');
    UniqueFd dir(open(slash == path_.npos ? "." : path_.substr(0, slash + 1).c_str(),
                      O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir.valid() || fsync(dir.get()) != 0) return fail_errno("fsync", path_);
    return {};
  }

 private:
  PendingFile(std::string path, std::string part)
      : path_(std::move(path)), part_(std::move(part)) {}
  std::string path_;
  std::string part_;
  UniqueFd fd_;
};

}  // namespace atl::cli
