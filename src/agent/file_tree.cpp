// Operations on names: stat, list, make, move, remove.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <memory>

#include "agent/file_ops.h"
#include "agent/users.h"

namespace atl::agent {
namespace {

constexpr uint64_t kDefaultListLimit = 100'000;
constexpr size_t kEntriesPerFrame = 256;
constexpr int kMaxDepth = 512;

struct DirCloser {
  void operator()(DIR* dir) const { closedir(dir); }
};
using DirHandle = std::unique_ptr<DIR, DirCloser>;

bool is_dot(const char* name) {
  return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::File;
  if (S_ISDIR(mode)) return FileKind::Directory;
  if (S_ISLNK(mode)) return FileKind::Symlink;
  return FileKind::Other;
}

int64_t milliseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
}

// Sends entries in batches, so that a directory of a million names needs little memory.
class EntrySender {
 public:
  EntrySender(FileChannel& channel, uint64_t limit)
      : channel_(channel), left_(limit == 0 ? kDefaultListLimit : limit) {}

  Result<void> add(FileEntry entry) {
    if (left_ == 0) {
      batch_.truncated = true;
      return {};
    }
    left_--;
    batch_.entries.push_back(std::move(entry));
    if (batch_.entries.size() < kEntriesPerFrame) return {};
    ATOLL_TRY(channel_.send(batch_));
    batch_.entries.clear();
    return {};
  }
  bool full() const { return batch_.truncated; }
  Result<void> finish() {
    batch_.last = true;
    return channel_.send(batch_);
  }

 private:
  FileChannel& channel_;
  uint64_t left_;
  wire::FileEntries batch_;
};

Result<void> list_into(EntrySender& sender, const wire::FileRequest& request, UniqueFd dir_fd,
                       const std::string& path, int depth) {
  if (depth > kMaxDepth) return {};
  DirHandle dir(fdopendir(dir_fd.get()));
  if (dir == nullptr) return fail_errno("list", path);
  (void)dir_fd.release();
  std::string prefix = path == "/" ? path : path + "/";
  while (dirent* item = readdir(dir.get())) {
    if (is_dot(item->d_name) || (!request.hidden && item->d_name[0] == '.')) continue;
    struct stat info {};
    if (fstatat(dirfd(dir.get()), item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    std::string child = prefix + item->d_name;
    ATOLL_TRY(sender.add(make_entry(child, info)));
    if (sender.full()) return {};
    if (request.recursive && S_ISDIR(info.st_mode)) {
      UniqueFd below(
          openat(dirfd(dir.get()), item->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (below.valid()) {
        ATOLL_TRY(list_into(sender, request, std::move(below), child, depth + 1));
      }
    }
  }
  return {};
}

}  // namespace

std::string parent_of(const std::string& path) {
  size_t slash = path.find_last_of('/');
  if (slash == path.npos || slash == 0) return "/";
  return path.substr(0, slash);
}

std::string base_name(const std::string& path) {
  size_t slash = path.find_last_of('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

FileEntry make_entry(const std::string& path, const struct stat& info) {
  FileEntry entry;
  entry.name = base_name(path);
  entry.path = path;
  entry.kind = kind_of(info.st_mode);
  entry.mode = info.st_mode & 07777;
  entry.uid = info.st_uid;
  entry.gid = info.st_gid;
  entry.owner = user_name(info.st_uid);
  entry.group = group_name(info.st_gid);
  entry.size = static_cast<uint64_t>(info.st_size);
  entry.modified_ms = milliseconds(info.st_mtim);
  entry.accessed_ms = milliseconds(info.st_atim);
  if (entry.kind == FileKind::Symlink) {
    char target[PATH_MAX];
    ssize_t size = readlink(path.c_str(), target, sizeof target);
    if (size > 0) entry.link_target.assign(target, static_cast<size_t>(size));
    struct stat end {};
    if (stat(path.c_str(), &end) == 0) entry.target_kind = kind_of(end.st_mode);
  }
  return entry;
}

Result<void> file_stat(FileChannel& channel, const wire::FileRequest& request) {
  struct stat info {};
  int flags = request.follow ? 0 : AT_SYMLINK_NOFOLLOW;
  if (fstatat(AT_FDCWD, request.path.c_str(), &info, flags) != 0) {
    return fail_errno("stat", request.path);
  }
  wire::FileEntries reply;
  reply.entries.push_back(make_entry(request.path, info));
  reply.last = true;
  return channel.send(reply);
}

Result<void> file_list(FileChannel& channel, const wire::FileRequest& request) {
  UniqueFd dir(open(request.path.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
  if (!dir.valid()) return fail_errno("list", request.path);
  EntrySender sender(channel, request.limit);
  ATOLL_TRY(list_into(sender, request, std::move(dir), request.path, 0));
  return sender.finish();
}

Result<void> make_directories(const std::string& path, uint32_t mode) {
  if (mkdir(path.c_str(), mode) == 0 || errno == EEXIST) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) return fail_errno("stat", path);
    if (!S_ISDIR(info.st_mode)) {
      errno = ENOTDIR;
      return fail_errno("mkdir", path);
    }
    return {};
  }
  if (errno != ENOENT || path == "/") return fail_errno("mkdir", path);
  ATOLL_TRY(make_directories(parent_of(path), 0755));
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return fail_errno("mkdir", path);
  return {};
}

Result<void> make_parents(const std::string& path) {
  return make_directories(parent_of(path), 0755);
}

Result<void> file_mkdir(FileChannel& channel, const wire::FileRequest& request) {
  uint32_t mode = request.mode == 0 ? 0755 : request.mode;
  if (request.recursive) {
    ATOLL_TRY(make_directories(request.path, mode));
  } else if (mkdir(request.path.c_str(), mode) != 0) {
    return fail_errno("mkdir", request.path);
  }
  return channel.send(wire::Done{});
}

Result<void> file_move(FileChannel& channel, const wire::FileRequest& request) {
  ATOLL_TRY(make_parents(request.target));
  if (rename(request.path.c_str(), request.target.c_str()) != 0) {
    return fail_errno("move", request.path + " to " + request.target);
  }
  return channel.send(wire::Done{});
}

Result<void> remove_tree(int parent, const char* name) {
  if (unlinkat(parent, name, 0) == 0) return {};
  if (errno != EISDIR && errno != EPERM && errno != EBUSY) return fail_errno("remove", name);
  UniqueFd fd(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("remove", name);
  DirHandle dir(fdopendir(fd.get()));
  if (dir == nullptr) return fail_errno("remove", name);
  (void)fd.release();
  while (dirent* item = readdir(dir.get())) {
    if (is_dot(item->d_name)) continue;
    ATOLL_TRY(remove_tree(dirfd(dir.get()), item->d_name));
  }
  if (unlinkat(parent, name, AT_REMOVEDIR) != 0) return fail_errno("remove", name);
  return {};
}

Result<void> file_remove(FileChannel& channel, const wire::FileRequest& request) {
  struct stat info {};
  if (lstat(request.path.c_str(), &info) != 0) {
    if (errno == ENOENT && request.force) return channel.send(wire::Done{});
    return fail_errno("remove", request.path);
  }
  if (request.recursive) {
    ATOLL_TRY(remove_tree(AT_FDCWD, request.path.c_str()));
  } else if (unlinkat(AT_FDCWD, request.path.c_str(), S_ISDIR(info.st_mode) ? AT_REMOVEDIR : 0) !=
             0) {
    if (errno == ENOTEMPTY) {
      return fail(Error(ErrorCode::Conflict,
                        request.path + " is a directory with files in it; ask for recursive")
                      .with_field("recursive"));
    }
    return fail_errno("remove", request.path);
  }
  return channel.send(wire::Done{});
}

}  // namespace atl::agent
