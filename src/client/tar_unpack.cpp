#include "client/tar_unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "base/unique_fd.h"

namespace atl::client {
namespace {

constexpr size_t kBlock = 256 * 1024;
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

struct FreeArchive {
  void operator()(archive* opened) const { archive_read_free(opened); }
};

// A name as its bytes; only in a locale that cannot hold it does the plain getter give nothing.
const char* either(const char* plain, const char* utf8) { return plain ? plain : utf8; }

// An entry's parent directory and its own name in it.
struct Place {
  UniqueFd dir;
  std::string name;
};

class Unpacker {
 public:
  Unpacker(const ByteSource& source, UniqueFd root)
      : source_(source), root_(std::move(root)), archive_(archive_read_new()), block_(kBlock) {
    archive_read_support_format_tar(archive_.get());
    archive_read_support_format_empty(archive_.get());
    archive_read_support_filter_gzip(archive_.get());
  }

  Result<TransferReport> run() {
    ATOLL_TRY(check(archive_read_open(archive_.get(), this, nullptr, &Unpacker::read, nullptr)));
    archive_entry* entry = nullptr;
    while (true) {
      int status = archive_read_next_header(archive_.get(), &entry);
      if (status == ARCHIVE_EOF) break;
      ATOLL_TRY(check(status));
      auto done = extract(*entry);
      if (!done) return fail(std::move(done).error());
    }
    finish_directories();
    return report_;
  }

 private:
  static la_ssize_t read(archive* opened, void* self, const void** bytes) {
    auto* unpacker = static_cast<Unpacker*>(self);
    auto got = unpacker->source_(unpacker->block_);
    *bytes = unpacker->block_.data();
    if (got) return static_cast<la_ssize_t>(*got);
    unpacker->failure_ = std::move(got).error();
    archive_set_error(opened, EIO, "%s", "the sender failed");
    return -1;
  }

  Result<void> check(int status) {
    if (status == ARCHIVE_OK || status == ARCHIVE_WARN) return {};
    if (failure_) return fail(*failure_);
    const char* text = archive_error_string(archive_.get());
    return fail(ErrorCode::Internal,
                std::string("unpacking: ") + (text == nullptr ? "damaged archive" : text));
  }

  // Walks without following links; makes the directories that the archive does not name.
  Result<Place> place(const std::string& path) {
    UniqueFd dir(fcntl(root_.get(), F_DUPFD_CLOEXEC, 3));
    if (!dir.valid()) return fail_errno("dup", path);
    size_t from = 0;
    while (true) {
      size_t slash = path.find('/', from);
      std::string name = path.substr(from, slash == path.npos ? slash : slash - from);
      if (slash == path.npos) return Place{std::move(dir), std::move(name)};
      if (mkdirat(dir.get(), name.c_str(), 0755) != 0 && errno != EEXIST) {
        return fail_errno("mkdir", path.substr(0, slash));
      }
      UniqueFd below(openat(dir.get(), name.c_str(), kDirectoryFlags));
      if (!below.valid()) return fail_errno("open directory", path.substr(0, slash));
      dir = std::move(below);
      from = slash + 1;
    }
  }

  Result<void> extract(archive_entry& entry) {
    const char* raw = either(archive_entry_pathname(&entry), archive_entry_pathname_utf8(&entry));
    if (raw == nullptr) return fail(ErrorCode::InvalidArgument, "an entry without a name");
    ATOLL_ASSIGN(std::string path, safe_entry_path(raw));
    if (path.empty()) return {};
    ATOLL_ASSIGN(Place at, place(path));
    if (const char* target =
            either(archive_entry_hardlink(&entry), archive_entry_hardlink_utf8(&entry))) {
      return make_hard_link(at, path, target);
    }
    switch (archive_entry_filetype(&entry)) {
      case AE_IFREG:
        return make_file(at, path, entry);
      case AE_IFDIR:
        return make_directory(at, path, entry);
      case AE_IFLNK:
        return make_link(at, path, entry);
      default:
        report_.skipped++;
        return {};
    }
  }

  static Result<void> clear(const Place& at, const std::string& path) {
    if (unlinkat(at.dir.get(), at.name.c_str(), 0) == 0 || errno == ENOENT) return {};
    return fail_errno("replace", path);
  }

  Result<void> make_file(const Place& at, const std::string& path, archive_entry& entry) {
    ATOLL_TRY(clear(at, path));
    UniqueFd fd(openat(at.dir.get(), at.name.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd.valid()) return fail_errno("create", path);
    ATOLL_TRY(check(archive_read_data_into_fd(archive_.get(), fd.get())));
    fchmod(fd.get(), archive_entry_perm(&entry) & 0777);
    timespec time{archive_entry_mtime(&entry), archive_entry_mtime_nsec(&entry)};
    timespec times[] = {time, time};
    futimens(fd.get(), times);
    report_.files++;
    report_.bytes += static_cast<uint64_t>(archive_entry_size(&entry));
    return {};
  }

  Result<void> make_directory(const Place& at, const std::string& path, archive_entry& entry) {
    if (mkdirat(at.dir.get(), at.name.c_str(), 0700) != 0 && errno != EEXIST) {
      return fail_errno("mkdir", path);
    }
    UniqueFd fd(openat(at.dir.get(), at.name.c_str(), kDirectoryFlags));
    if (!fd.valid()) return fail_errno("open directory", path);
    directories_.push_back({path,
                            archive_entry_perm(&entry) & 0777,
                            {archive_entry_mtime(&entry), archive_entry_mtime_nsec(&entry)}});
    return {};
  }

  static Result<void> make_link(const Place& at, const std::string& path, archive_entry& entry) {
    ATOLL_TRY(clear(at, path));
    const char* target = either(archive_entry_symlink(&entry), archive_entry_symlink_utf8(&entry));
    if (target == nullptr) return fail(ErrorCode::InvalidArgument, path + " is a link to nothing");
    if (symlinkat(target, at.dir.get(), at.name.c_str()) != 0) return fail_errno("symlink", path);
    return {};
  }

  Result<void> make_hard_link(const Place& at, const std::string& path, const char* target) {
    ATOLL_ASSIGN(std::string target_path, safe_entry_path(target));
    if (target_path.empty()) return fail(ErrorCode::InvalidArgument, path + " links to nothing");
    ATOLL_ASSIGN(Place from, place(target_path));
    ATOLL_TRY(clear(at, path));
    if (linkat(from.dir.get(), from.name.c_str(), at.dir.get(), at.name.c_str(), 0) != 0) {
      return fail_errno("link", path);
    }
    report_.files++;
    return {};
  }

  // Last, from the deepest up: a read-only directory could not be filled, and filling changes its
  // time.
  void finish_directories() {
    for (auto made = directories_.rbegin(); made != directories_.rend(); ++made) {
      auto at = place(made->path);
      if (!at) continue;
      UniqueFd fd(openat(at->dir.get(), at->name.c_str(), kDirectoryFlags));
      if (!fd.valid()) continue;
      timespec times[] = {made->time, made->time};
      fchmod(fd.get(), made->mode);
      futimens(fd.get(), times);
    }
  }

  struct MadeDirectory {
    std::string path;
    mode_t mode;
    timespec time;
  };

  const ByteSource& source_;
  UniqueFd root_;
  std::unique_ptr<archive, FreeArchive> archive_;
  std::vector<char> block_;
  std::optional<Error> failure_;
  std::vector<MadeDirectory> directories_;
  TransferReport report_;
};

}  // namespace

Result<std::string> safe_entry_path(std::string_view name) {
  std::string safe;
  if (name.starts_with('/') || name.find('\0') != name.npos) {
    return fail(ErrorCode::InvalidArgument,
                "the archive names a path outside: " + std::string(name));
  }
  while (!name.empty()) {
    size_t slash = name.find('/');
    std::string_view part = name.substr(0, slash);
    name.remove_prefix(slash == name.npos ? name.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      return fail(ErrorCode::InvalidArgument, "the archive names a path outside: .. in an entry");
    }
    if (!safe.empty()) safe.push_back('/');
    safe.append(part);
  }
  return safe;
}

Result<TransferReport> unpack_tar(const ByteSource& source, const std::string& directory) {
  std::error_code bad;
  std::filesystem::create_directories(directory, bad);
  UniqueFd root(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return fail_errno("open directory", directory);
  return Unpacker(source, std::move(root)).run();
}

}  // namespace atl::client
