// Reading and writing whole files.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>

#include "agent/file_ops.h"

namespace atl::agent {

static constexpr std::string_view kUnfinished = ".atoll-";
static constexpr size_t kUnfinishedDigits = 16;

std::string unfinished_name() {
  unsigned long long random = 0;
  getrandom(&random, sizeof random, 0);
  char digits[kUnfinishedDigits + 1];
  snprintf(digits, sizeof digits, "%016llx", random);
  return std::string(kUnfinished) + digits;
}

bool is_unfinished(std::string_view name) {
  return name.starts_with(kUnfinished) && name.size() == kUnfinished.size() + kUnfinishedDigits;
}
namespace {

// The server holds one for each client, also for one that does not read.
constexpr size_t kChunk = 256u << 10;

// Opening a FIFO or a device must neither block nor have effects.
Result<UniqueFd> open_regular(const std::string& path, struct stat& info) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("open", path);
  if (fstat(fd.get(), &info) != 0) return fail_errno("stat", path);
  if (S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return fail_errno("read", path);
  }
  if (!S_ISREG(info.st_mode)) {
    return fail(
        Error(ErrorCode::InvalidArgument, path + " is not a regular file").with_field("path"));
  }
  return fd;
}

// Files of /proc say size 0 and have content: read them to their end, within a bound.
Result<void> send_unsized(FileChannel& channel, int fd, const std::string& path) {
  std::string buffer(64u << 10, 0);
  uint64_t total = 0;
  while (total < (16u << 20)) {
    ssize_t size = read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size < 0) return fail_errno("read", path);
    if (size == 0) break;
    ATOLL_TRY(channel.send_data({buffer.data(), static_cast<size_t>(size)}));
    total += static_cast<uint64_t>(size);
  }
  return channel.send(wire::FileEnd{});
}

Result<void> send_range(FileChannel& channel, int fd, uint64_t offset, uint64_t size) {
  if (lseek(fd, static_cast<off_t>(offset), SEEK_SET) < 0) return fail_errno("seek");
  while (size > 0) {
    size_t chunk = static_cast<size_t>(std::min<uint64_t>(size, kChunk));
    ATOLL_ASSIGN(size_t sent, channel.send_file(fd, chunk));
    size -= sent;
  }
  return channel.send(wire::FileEnd{});
}

// Lines first..last, 1-based and inclusive; past the end is the end.
Result<void> send_lines(FileChannel& channel, int fd, const wire::FileRequest& request) {
  std::string buffer(64u << 10, 0);
  uint64_t line = 1;
  uint64_t last = request.last_line == 0 ? UINT64_MAX : request.last_line;
  while (line <= last) {
    ssize_t size = read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("read", request.path);
    if (size == 0) break;
    std::string_view rest(buffer.data(), static_cast<size_t>(size));
    std::string wanted;
    while (!rest.empty() && line <= last) {
      size_t newline = rest.find('\n');
      size_t length = newline == rest.npos ? rest.size() : newline + 1;
      if (line >= request.first_line) wanted.append(rest.substr(0, length));
      if (newline != rest.npos) line++;
      rest.remove_prefix(length);
    }
    if (!wanted.empty()) ATOLL_TRY(channel.send_data(wanted));
  }
  return channel.send(wire::FileEnd{});
}

// Writes beside the target and renames over it: a reader sees the old file or the new one. The new
// file has no name until it is complete, so that even a killed worker leaves nothing behind.
class ReplacementFile {
 public:
  static Result<ReplacementFile> create(std::string target) {
    ReplacementFile file;
    file.target_ = std::move(target);
    std::string parent = parent_of(file.target_);
    file.temporary_ = parent + "/" + unfinished_name();
    file.fd_.reset(open(parent.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600));
    if (file.fd_.valid()) return file;
    // Overlayfs can do that since Linux 6.3, and not every file system inside is one.
    file.named_ = true;
    file.fd_.reset(open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.fd_.valid()) return fail_errno("create", file.target_);
    return file;
  }
  ReplacementFile(ReplacementFile&&) = default;
  ~ReplacementFile() {
    if (fd_.valid() && named_) unlink(temporary_.c_str());
  }

  Result<void> append(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t size = write(fd_.get(), bytes.data(), bytes.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return fail_errno("write", target_);
      bytes.remove_prefix(static_cast<size_t>(size));
    }
    return {};
  }

  Result<struct stat> publish(uint32_t mode, const struct stat* replaced) {
    if (replaced != nullptr) {
      // Only root may give files away; for others the new file is simply theirs.
      (void)!fchown(fd_.get(), replaced->st_uid, replaced->st_gid);
      if (mode == 0) mode = replaced->st_mode & 07777;
    }
    fchmod(fd_.get(), mode == 0 ? 0644 : mode);
    struct stat info {};
    if (fstat(fd_.get(), &info) != 0) return fail_errno("stat", target_);
    if (!named_) ATOLL_TRY(give_name());
    if (rename(temporary_.c_str(), target_.c_str()) != 0) return fail_errno("write", target_);
    fd_.reset();
    return info;
  }

 private:
  ReplacementFile() = default;

  Result<void> give_name() {
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd_.get());
    if (linkat(AT_FDCWD, self, AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      return fail_errno("write", target_);
    }
    named_ = true;
    return {};
  }

  std::string target_;
  std::string temporary_;
  UniqueFd fd_;
  bool named_ = false;
};

// A write through a symbolic link writes the file it points to.
std::string follow_link(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? std::string(resolved) : path;
}

Result<void> receive_into(FileChannel& channel, ReplacementFile& file) {
  for (;;) {
    ATOLL_ASSIGN(std::string_view part, channel.receive_data());
    if (part.empty()) return {};
    ATOLL_TRY(file.append(part));
  }
}

}  // namespace

Result<void> file_read(FileChannel& channel, const wire::FileRequest& request) {
  struct stat info {};
  ATOLL_ASSIGN(UniqueFd fd, open_regular(request.path, info));
  ATOLL_TRY(channel.send(wire::FileReply{.entry = make_entry(request.path, info)}));
  if (request.first_line != 0) return send_lines(channel, fd.get(), request);
  if (info.st_size == 0) return send_unsized(channel, fd.get(), request.path);
  auto size = static_cast<uint64_t>(info.st_size);
  uint64_t offset = std::min(request.offset, size);
  uint64_t wanted = request.limit == 0 ? size : request.limit;
  return send_range(channel, fd.get(), offset, std::min(wanted, size - offset));
}

Result<void> file_write(FileChannel& channel, const wire::FileRequest& request) {
  ATOLL_TRY(make_parents(request.path));
  std::string target = follow_link(request.path);
  struct stat existing {};
  bool exists = stat(target.c_str(), &existing) == 0;
  if (exists && S_ISDIR(existing.st_mode)) {
    errno = EISDIR;
    return fail_errno("write", target);
  }
  if (exists && !S_ISREG(existing.st_mode)) {
    return fail(
        Error(ErrorCode::InvalidArgument, target + " is not a regular file").with_field("path"));
  }
  ATOLL_ASSIGN(ReplacementFile file, ReplacementFile::create(target));
  ATOLL_TRY(receive_into(channel, file));
  ATOLL_ASSIGN(struct stat info, file.publish(request.mode, exists ? &existing : nullptr));
  return channel.send(wire::FileReply{.entry = make_entry(request.path, info)});
}

}  // namespace atl::agent
