// Packs a directory as a tar stream, names relative to it.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "agent/file_ops.h"
#include "agent/tar_format.h"

namespace atl::agent {
namespace {

constexpr int kMaxDepth = 256;
constexpr size_t kBuffer = 256u << 10;

class Packer {
 public:
  explicit Packer(FileChannel& channel) : channel_(channel) {}

  Result<void> directory(UniqueFd fd, const std::string& prefix, int depth) {
    if (depth > kMaxDepth) return fail(ErrorCode::InvalidArgument, "directories nested too deep");
    DIR* dir = fdopendir(fd.get());
    if (dir == nullptr) return fail_errno("list", prefix);
    std::unique_ptr<DIR, int (*)(DIR*)> closer(dir, closedir);
    (void)fd.release();
    while (dirent* item = readdir(dir)) {
      if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
      ATOLL_TRY(entry(dirfd(dir), item->d_name, prefix + item->d_name, depth));
    }
    return {};
  }

  Result<void> finish() {
    pending_.append(2 * kTarBlock, '\0');
    ATOLL_TRY(flush());
    return channel_.send(wire::FileEnd{});
  }

 private:
  Result<void> entry(int dir, const char* name, const std::string& path, int depth) {
    struct stat info {};
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return {};  // gone since
    TarEntry header;
    header.path = path;
    header.mode = info.st_mode & 07777;
    header.uid = info.st_uid;
    header.gid = info.st_gid;
    header.mtime = info.st_mtim.tv_sec;
    if (S_ISDIR(info.st_mode)) {
      header.type = '5';
      header.path += "/";
      ATOLL_TRY(append(make_tar_header(header)));
      UniqueFd below(openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!below.valid()) return fail_errno("list", path);
      return directory(std::move(below), path + "/", depth + 1);
    }
    if (S_ISLNK(info.st_mode)) {
      char target[PATH_MAX];
      ssize_t size = readlinkat(dir, name, target, sizeof target);
      if (size < 0) return {};
      header.type = '2';
      header.link_target.assign(target, static_cast<size_t>(size));
      return append(make_tar_header(header));
    }
    return S_ISREG(info.st_mode) ? file(dir, name, header) : Result<void>();
  }

  Result<void> file(int dir, const char* name, TarEntry& header) {
    UniqueFd fd(openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid() && errno == ENOENT) return {};  // gone since
    if (!fd.valid()) return fail_errno("read", header.path);
    struct stat info {};
    if (fstat(fd.get(), &info) != 0) return fail_errno("stat", header.path);
    header.size = static_cast<uint64_t>(info.st_size);
    ATOLL_TRY(append(make_tar_header(header)));
    uint64_t left = header.size;
    while (left > 0) {
      size_t room = static_cast<size_t>(std::min<uint64_t>(left, kBuffer));
      size_t start = pending_.size();
      pending_.resize(start + room);
      ssize_t size = read(fd.get(), pending_.data() + start, room);
      if (size < 0) return fail_errno("read", header.path);
      // A file that shrinks while it is read is filled up with zeros, as tar does.
      if (size == 0) memset(pending_.data() + start, 0, room);
      size_t got = size == 0 ? room : static_cast<size_t>(size);
      pending_.resize(start + got);
      left -= got;
      if (pending_.size() >= kBuffer) ATOLL_TRY(flush());
    }
    pending_.append(tar_padding(header.size), '\0');
    return {};
  }

  Result<void> append(const std::string& bytes) {
    pending_ += bytes;
    return pending_.size() >= kBuffer ? flush() : Result<void>();
  }

  Result<void> flush() {
    ATOLL_TRY(channel_.send_data(pending_));
    pending_.clear();
    return {};
  }

  FileChannel& channel_;
  std::string pending_;
};

}  // namespace

Result<void> tree_read(FileChannel& channel, const wire::FileRequest& request) {
  UniqueFd fd(open(request.path.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("read directory", request.path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return fail_errno("stat", request.path);
  ATOLL_TRY(channel.send(wire::FileReply{.entry = make_entry(request.path, info)}));
  Packer packer(channel);
  ATOLL_TRY(packer.directory(std::move(fd), "", 0));
  return packer.finish();
}

}  // namespace atl::agent
