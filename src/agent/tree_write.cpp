// Unpacks a tar stream below a directory and never outside it: every name is opened beneath that
// directory by the kernel, whatever links the archive made before.
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>

#include "agent/file_ops.h"
#include "agent/tar_format.h"

namespace atl::agent {
namespace {

// Bytes of consecutive FileData frames as one stream.
class TarSource {
 public:
  explicit TarSource(FileChannel& channel) : channel_(channel) {}

  // The next bytes, at most `most`; empty at the end of the stream.
  Result<std::string_view> take(size_t most) {
    if (rest_.empty() && !ended_) {
      ATOLL_ASSIGN(rest_, channel_.receive_data());
      ended_ = rest_.empty();
    }
    std::string_view part = rest_.substr(0, most);
    rest_.remove_prefix(part.size());
    return part;
  }

  Result<std::string> exactly(size_t size) {
    std::string bytes;
    while (bytes.size() < size) {
      ATOLL_ASSIGN(std::string_view part, take(size - bytes.size()));
      if (part.empty()) return fail(ErrorCode::InvalidArgument, "the archive ends in mid-entry");
      bytes.append(part);
    }
    return bytes;
  }

  Result<void> skip(uint64_t size) {
    while (size > 0) {
      ATOLL_ASSIGN(std::string_view part,
                   take(static_cast<size_t>(std::min<uint64_t>(size, 1u << 20))));
      if (part.empty()) return fail(ErrorCode::InvalidArgument, "the archive ends in mid-entry");
      size -= part.size();
    }
    return {};
  }

  Result<void> drain() {
    for (;;) {
      ATOLL_ASSIGN(std::string_view part, take(1u << 20));
      if (part.empty()) return {};
    }
  }

 private:
  FileChannel& channel_;
  std::string_view rest_;
  bool ended_ = false;
};

int open_beneath(int root, const std::string& path, uint64_t flags, uint64_t mode = 0) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, root, path.c_str(), &how, sizeof how));
}

class Unpacker {
 public:
  Unpacker(TarSource& source, UniqueFd root) : source_(source), root_(std::move(root)) {}

  Result<void> run() {
    for (;;) {
      ATOLL_ASSIGN(std::string_view first, source_.take(1));
      // Many writers leave out the closing zero blocks; an archive of no blocks at all is none.
      if (first.empty() && seen_) return {};
      if (first.empty()) return fail(ErrorCode::InvalidArgument, "the archive is empty");
      seen_ = true;
      std::string block(first);
      ATOLL_ASSIGN(std::string rest, source_.exactly(kTarBlock - 1));
      block += rest;
      if (is_zero_block(block.data())) return source_.drain();
      auto entry = parse_tar_header(block.data());
      if (!entry) return fail(ErrorCode::InvalidArgument, "not a tar archive, or a damaged one");
      ATOLL_TRY(handle(*entry));
    }
  }

 private:
  Result<void> handle(TarEntry& entry) {
    if (entry.type == 'x' || entry.type == 'L' || entry.type == 'K') return remember(entry);
    if (entry.type == 'g') return source_.skip(entry.size + tar_padding(entry.size));
    if (!pax_.empty() && !apply_pax(pax_, entry)) {
      return fail(ErrorCode::InvalidArgument, "damaged pax header in the archive");
    }
    if (!long_name_.empty()) entry.path = long_name_;
    if (!long_link_.empty()) entry.link_target = long_link_;
    pax_.clear();
    long_name_.clear();
    long_link_.clear();
    ATOLL_TRY(clean(entry.path));
    if (entry.type == '1') ATOLL_TRY(clean(entry.link_target));
    if (entry.path.empty()) return source_.skip(entry.size + tar_padding(entry.size));
    auto result = create(entry);
    if (!result) return fail(std::move(result.error()).context("unpacking " + entry.path));
    return {};
  }

  Result<void> remember(const TarEntry& entry) {
    if (entry.size > (1u << 20))
      return fail(ErrorCode::InvalidArgument, "over-long name in the archive");
    ATOLL_ASSIGN(std::string data, source_.exactly(static_cast<size_t>(entry.size)));
    ATOLL_TRY(source_.skip(tar_padding(entry.size)));
    if (entry.type == 'x')
      pax_ = std::move(data);
    else
      (entry.type == 'L' ? long_name_ : long_link_) = data.c_str();
    return {};
  }

  // Strips what leads out by name; links are the kernel's business.
  static Result<void> clean(std::string& path) {
    if (path.find('\0') != path.npos) return fail(ErrorCode::InvalidArgument, "NUL in a name");
    std::string result;
    std::string_view rest = path;
    while (!rest.empty()) {
      size_t slash = rest.find('/');
      std::string_view part = rest.substr(0, slash);
      if (part == "..") {
        return fail(ErrorCode::InvalidArgument, "the archive names a path outside: " + path);
      }
      if (!part.empty() && part != ".") {
        if (!result.empty()) result.push_back('/');
        result.append(part);
      }
      if (slash == rest.npos) break;
      rest.remove_prefix(slash + 1);
    }
    path = std::move(result);
    return {};
  }

  Result<UniqueFd> parent(const std::string& path) {
    size_t slash = path.find_last_of('/');
    if (slash == path.npos) return UniqueFd(fcntl(root_.get(), F_DUPFD_CLOEXEC, 3));
    std::string dir = path.substr(0, slash);
    UniqueFd fd(open_beneath(root_.get(), dir, O_PATH | O_DIRECTORY));
    if (fd.valid()) return fd;
    if (errno == EXDEV || errno == ELOOP) {
      return fail(ErrorCode::InvalidArgument, dir + " leads out of the directory");
    }
    if (errno != ENOENT) return fail_errno("open", dir);
    ATOLL_ASSIGN(UniqueFd above, parent(dir));
    if (mkdirat(above.get(), base_name(dir).c_str(), 0755) != 0 && errno != EEXIST) {
      return fail_errno("mkdir", dir);
    }
    fd.reset(open_beneath(root_.get(), dir, O_PATH | O_DIRECTORY));
    if (!fd.valid()) return fail_errno("open", dir);
    return fd;
  }

  Result<void> create(const TarEntry& entry) {
    ATOLL_ASSIGN(UniqueFd dir, parent(entry.path));
    std::string name = base_name(entry.path);
    switch (entry.type) {
      case '0':
      case '7':
        return create_file(dir.get(), name, entry);
      case '5':
        return create_directory(dir.get(), name, entry);
      case '2':
        (void)!unlinkat(dir.get(), name.c_str(), 0);
        if (symlinkat(entry.link_target.c_str(), dir.get(), name.c_str()) != 0) {
          return fail_errno("symlink", name);
        }
        return {};
      case '1':
        return create_hard_link(dir.get(), name, entry);
      default:
        return fail(ErrorCode::InvalidArgument,
                    "only files, directories and links can be unpacked, this is another kind");
    }
  }

  Result<void> create_directory(int dir, const std::string& name, const TarEntry& entry) {
    if (mkdirat(dir, name.c_str(), entry.mode & 01777) != 0) {
      struct stat info {};
      bool is_dir =
          errno == EEXIST && fstatat(dir, name.c_str(), &info, 0) == 0 && S_ISDIR(info.st_mode);
      if (!is_dir) return fail_errno("mkdir", name);
    }
    return {};
  }

  Result<void> create_hard_link(int dir, const std::string& name, const TarEntry& entry) {
    ATOLL_ASSIGN(UniqueFd from, parent(entry.link_target));
    std::string target = base_name(entry.link_target);
    (void)!unlinkat(dir, name.c_str(), 0);
    if (linkat(from.get(), target.c_str(), dir, name.c_str(), 0) != 0)
      return fail_errno("link", name);
    return {};
  }

  Result<void> create_file(int dir, const std::string& name, const TarEntry& entry) {
    // A new inode: what runs from the old one, or reads it, keeps it.
    if (unlinkat(dir, name.c_str(), 0) != 0 && errno != ENOENT) return fail_errno("replace", name);
    UniqueFd fd(
        openat(dir, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd.valid()) return fail_errno("create", name);
    uint64_t left = entry.size;
    while (left > 0) {
      ATOLL_ASSIGN(std::string_view part,
                   source_.take(static_cast<size_t>(std::min<uint64_t>(left, 1u << 20))));
      if (part.empty()) return fail(ErrorCode::InvalidArgument, "the archive ends in mid-file");
      left -= part.size();
      while (!part.empty()) {
        ssize_t size = write(fd.get(), part.data(), part.size());
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return fail_errno("write", name);
        part.remove_prefix(static_cast<size_t>(size));
      }
    }
    fchmod(fd.get(), entry.mode & 0777);  // set-id bits do not travel in uploads
    timespec times[] = {{entry.mtime, 0}, {entry.mtime, 0}};
    if (entry.mtime > 0) futimens(fd.get(), times);
    return source_.skip(tar_padding(entry.size));
  }

  TarSource& source_;
  UniqueFd root_;
  bool seen_ = false;
  std::string pax_;
  std::string long_name_;
  std::string long_link_;
};

}  // namespace

Result<void> tree_write(FileChannel& channel, const wire::FileRequest& request) {
  ATOLL_TRY(make_directories(request.path, 0755));
  UniqueFd root(open(request.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return fail_errno("open", request.path);
  TarSource source(channel);
  Unpacker unpacker(source, std::move(root));
  ATOLL_TRY(unpacker.run());
  return channel.send(wire::Done{});
}

}  // namespace atl::agent
