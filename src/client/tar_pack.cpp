#include "client/tar_pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/unique_fd.h"

namespace atl::client {
namespace {

constexpr int kMaxDepth = 256;
constexpr size_t kBlock = 256 * 1024;
constexpr uint64_t kTarBlock = 512;

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};
struct FreeEntry {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};
struct FreeArchive {
  void operator()(archive* made) const { archive_write_free(made); }
};
using EntryPtr = std::unique_ptr<archive_entry, FreeEntry>;

bool is_dot(const char* name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

// Calls `visit(dir_fd, name, path, info)` for all that is below, a directory before its content.
template <class Visit>
Result<void> walk(UniqueFd fd, const std::string& prefix, int depth, const Visit& visit) {
  if (depth > kMaxDepth) return fail(ErrorCode::InvalidArgument, prefix + " is nested too deep");
  std::unique_ptr<DIR, CloseDir> dir(fdopendir(fd.get()));
  if (!dir) return fail_errno("list", prefix);
  (void)fd.release();
  // In one order, so that the same files are the same archive.
  std::vector<std::string> names;
  while (dirent* item = readdir(dir.get())) {
    if (!is_dot(item->d_name)) names.emplace_back(item->d_name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    std::string path = prefix + name;
    struct stat info {};
    int flags = AT_SYMLINK_NOFOLLOW;
    if (fstatat(dirfd(dir.get()), name.c_str(), &info, flags) != 0) continue;  // gone since
    ATOLL_TRY(visit(dirfd(dir.get()), name.c_str(), path, info));
    if (!S_ISDIR(info.st_mode)) continue;
    UniqueFd below(
        openat(dirfd(dir.get()), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!below.valid()) return fail_errno("list", path);
    ATOLL_TRY(walk(std::move(below), path + "/", depth + 1, visit));
  }
  return {};
}

class Packer {
 public:
  explicit Packer(const ByteSink& sink) : sink_(sink), archive_(archive_write_new()) {
    archive_write_set_format_pax_restricted(archive_.get());
    // Names are bytes, whatever the locale makes of them.
    archive_write_set_options(archive_.get(), "hdrcharset=BINARY");
    archive_write_set_bytes_per_block(archive_.get(), kBlock);
    archive_write_set_bytes_in_last_block(archive_.get(), 1);
  }

  Result<void> open() {
    return check(archive_write_open(archive_.get(), this, nullptr, &Packer::write, nullptr));
  }

  Result<void> add(int dir, const char* name, const std::string& path, const struct stat& info) {
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode) && !S_ISLNK(info.st_mode)) {
      report_.skipped++;
      return {};
    }
    EntryPtr entry(archive_entry_new());
    archive_entry_copy_stat(entry.get(), &info);
    archive_entry_copy_pathname(entry.get(), path.c_str());
    // A link to a file packed before would need its name; the content is packed again instead.
    archive_entry_set_nlink(entry.get(), 1);
    if (S_ISLNK(info.st_mode)) ATOLL_TRY(put_target(*entry, dir, name, path));
    if (S_ISREG(info.st_mode)) return add_file(*entry, dir, name, path);
    archive_entry_set_size(entry.get(), 0);
    return check(archive_write_header(archive_.get(), entry.get()));
  }

  Result<TransferReport> finish() {
    ATOLL_TRY(check(archive_write_close(archive_.get())));
    return report_;
  }

 private:
  static la_ssize_t write(archive* made, void* self, const void* bytes, size_t size) {
    auto* packer = static_cast<Packer*>(self);
    auto written = packer->sink_({static_cast<const char*>(bytes), size});
    if (written) return static_cast<la_ssize_t>(size);
    if (!packer->failure_) packer->failure_ = std::move(written).error();
    archive_set_error(made, EIO, "%s", "the receiver failed");
    return -1;
  }

  Result<void> check(int status) {
    if (status == ARCHIVE_OK || status == ARCHIVE_WARN) return {};
    if (failure_) return fail(*failure_);
    const char* text = archive_error_string(archive_.get());
    return fail(ErrorCode::Internal, text == nullptr ? "packing failed" : text);
  }

  Result<void> put_target(archive_entry& entry, int dir, const char* name,
                          const std::string& path) {
    char target[PATH_MAX];
    ssize_t size = readlinkat(dir, name, target, sizeof target - 1);
    if (size < 0) return fail_errno("read link", path);
    target[size] = '\0';
    archive_entry_copy_symlink(&entry, target);
    return {};
  }

  Result<void> add_file(archive_entry& entry, int dir, const char* name, const std::string& path) {
    UniqueFd fd(openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return fail_errno("open", path);
    struct stat info {};
    if (fstat(fd.get(), &info) != 0) return fail_errno("stat", path);
    archive_entry_set_size(&entry, info.st_size);
    ATOLL_TRY(check(archive_write_header(archive_.get(), &entry)));
    block_.resize(kBlock);
    auto left = static_cast<uint64_t>(info.st_size);
    while (left > 0) {
      ssize_t got = read(fd.get(), block_.data(), std::min<uint64_t>(left, block_.size()));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail_errno("read", path);
      if (got == 0) return fail(ErrorCode::Conflict, path + " became shorter while it was read");
      la_ssize_t put = archive_write_data(archive_.get(), block_.data(), static_cast<size_t>(got));
      if (put < 0) return check(ARCHIVE_FATAL);
      left -= static_cast<uint64_t>(got);
      report_.bytes += static_cast<uint64_t>(got);
    }
    report_.files++;
    return {};
  }

  const ByteSink& sink_;
  std::unique_ptr<archive, FreeArchive> archive_;
  std::optional<Error> failure_;
  std::vector<char> block_;
  TransferReport report_;
};

Result<UniqueFd> open_directory(const std::string& directory) {
  UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("open", directory);
  return fd;
}

}  // namespace

Result<TransferReport> pack_tar(const std::string& directory, const ByteSink& sink) {
  ATOLL_ASSIGN(UniqueFd fd, open_directory(directory));
  Packer packer(sink);
  ATOLL_TRY(packer.open());
  ATOLL_TRY(walk(std::move(fd), "", 0,
                 [&](int dir, const char* name, const std::string& path, const struct stat& info) {
                   return packer.add(dir, name, path, info);
                 }));
  return packer.finish();
}

Result<uint64_t> tree_bytes(const std::string& directory) {
  ATOLL_ASSIGN(UniqueFd fd, open_directory(directory));
  uint64_t total = 2 * kTarBlock;
  ATOLL_TRY(
      walk(std::move(fd), "", 0,
           [&](int, const char*, const std::string&, const struct stat& info) -> Result<void> {
             uint64_t size = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
             total += kTarBlock + (size + kTarBlock - 1) / kTarBlock * kTarBlock;
             return {};
           }));
  return total;
}

}  // namespace atl::client
