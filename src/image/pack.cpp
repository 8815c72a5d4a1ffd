// The files below the root of the calling process, as a tar archive.
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "image/child_report.h"
#include "image/export.h"
#include "image/inflate.h"
#include "image/tree.h"

namespace atl::image {
namespace {

constexpr size_t kBlock = 256 * 1024;

struct FreeWriter {
  void operator()(archive* writer) const { archive_write_free(writer); }
};
struct FreeEntry {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

// What every import makes anew.
bool is_left_out(const std::string& path) {
  return path == ".atoll" || path.starts_with("dev/") || path.starts_with("proc/") ||
         path.starts_with("sys/");
}

la_ssize_t write_frame(archive*, void* socket, const void* data, size_t size) {
  auto sent = send_inflated(*static_cast<int*>(socket), {static_cast<const char*>(data), size});
  return sent && *sent ? static_cast<la_ssize_t>(size) : -1;
}

class Packer {
 public:
  explicit Packer(int socket) : socket_(socket), writer_(archive_write_new()) {}

  Result<void> run() {
    archive_write_set_format_pax_restricted(writer_.get());
    archive_write_set_bytes_per_block(writer_.get(), static_cast<int>(kBlock));
    if (archive_write_open(writer_.get(), &socket_, nullptr, write_frame, nullptr) != ARCHIVE_OK) {
      return fail(unwritable());
    }
    // Directories first, then what is in them: a queue and no recursion, however deep it goes.
    std::vector<std::string> waiting{"."};
    while (!waiting.empty()) {
      std::string directory = std::move(waiting.back());
      waiting.pop_back();
      ATOLL_TRY(pack_directory(directory, waiting));
    }
    if (archive_write_close(writer_.get()) != ARCHIVE_OK) return fail(unwritable());
    return {};
  }

 private:
  Error unwritable() const {
    const char* reason = archive_error_string(writer_.get());
    return Error(ErrorCode::Internal,
                 std::string("packing: ") + (reason == nullptr ? "unknown error" : reason));
  }

  Result<void> pack_directory(const std::string& path, std::vector<std::string>& waiting) {
    UniqueFd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!dir.valid()) return fail_errno("open", path);
    ATOLL_ASSIGN(std::vector<std::string> names, list_directory(dir.get()));
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      std::string child = path == "." ? name : path + "/" + name;
      if (is_left_out(child)) continue;
      ATOLL_ASSIGN(bool is_directory, pack(child));
      if (is_directory) waiting.push_back(std::move(child));
    }
    return {};
  }

  Result<bool> pack(const std::string& path) {
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0) return fail_errno("lstat", path);
    bool packable = S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) || S_ISLNK(info.st_mode) ||
                    S_ISFIFO(info.st_mode);
    if (!packable) return false;
    std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
    archive_entry_copy_stat(entry.get(), &info);
    archive_entry_copy_pathname(entry.get(), path.c_str());
    if (S_ISLNK(info.st_mode)) ATOLL_TRY(add_target(entry.get(), path));
    bool linked = S_ISREG(info.st_mode) && info.st_nlink > 1 && add_link(entry.get(), path, info);
    if (!linked) add_attributes(entry.get(), path);
    if (archive_write_header(writer_.get(), entry.get()) < ARCHIVE_WARN) return fail(unwritable());
    if (S_ISREG(info.st_mode) && !linked) ATOLL_TRY(copy_content(path));
    return S_ISDIR(info.st_mode);
  }

  static Result<void> add_target(archive_entry* entry, const std::string& path) {
    std::string target(PATH_MAX, '\0');
    ssize_t size = readlink(path.c_str(), target.data(), target.size());
    if (size < 0) return fail_errno("readlink", path);
    target.resize(static_cast<size_t>(size));
    archive_entry_copy_symlink(entry, target.c_str());
    return {};
  }

  // Whether the same file has been packed under another name.
  bool add_link(archive_entry* entry, const std::string& path, const struct stat& info) {
    auto [first, is_new] = packed_.emplace(std::pair(info.st_dev, info.st_ino), path);
    if (is_new) return false;
    archive_entry_copy_hardlink(entry, first->second.c_str());
    archive_entry_set_size(entry, 0);
    return true;
  }

  static void add_attributes(archive_entry* entry, const std::string& path) {
    std::string names(1 << 16, '\0');
    ssize_t size = llistxattr(path.c_str(), names.data(), names.size());
    for (ssize_t at = 0; at < size; at += static_cast<ssize_t>(strlen(&names[at])) + 1) {
      const char* name = &names[at];
      std::string value(1 << 16, '\0');
      ssize_t length = lgetxattr(path.c_str(), name, value.data(), value.size());
      if (length >= 0) {
        archive_entry_xattr_add_entry(entry, name, value.data(), static_cast<size_t>(length));
      }
    }
  }

  Result<void> copy_content(const std::string& path) {
    UniqueFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file.valid()) return fail_errno("open", path);
    for (;;) {
      ssize_t size = read(file.get(), buffer_.get(), kBlock);
      if (size < 0) return fail_errno("read", path);
      if (size == 0) return {};
      if (archive_write_data(writer_.get(), buffer_.get(), static_cast<size_t>(size)) < 0) {
        return fail(unwritable());
      }
    }
  }

  int socket_;
  std::unique_ptr<archive, FreeWriter> writer_;
  std::unique_ptr<char[]> buffer_ = std::make_unique_for_overwrite<char[]>(kBlock);
  std::map<std::pair<dev_t, ino_t>, std::string> packed_;
};

}  // namespace

void run_packing(int socket, const void*) { finish_inflated(socket, Packer(socket).run()); }

}  // namespace atl::image
