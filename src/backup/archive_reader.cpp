#include "backup/archive_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/unique_fd.h"
#include "image/sha256.h"
#include "os/file.h"

namespace atl::backup {
namespace {

constexpr size_t kBlock = 256 * 1024;
constexpr size_t kMaxManifestBytes = 16u << 20;

struct FreeArchive {
  void operator()(archive* made) const { archive_read_free(made); }
};

struct Seen {
  uint64_t bytes = 0;
  std::string sha256;
};

class Reader {
 public:
  Reader(std::string path, int into) : path_(std::move(path)), into_(into) {}

  Result<Manifest> read() {
    UniqueFd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return fail_errno("open", path_);
    archive* in = archive_.get();
    archive_read_support_filter_zstd(in);
    archive_read_support_format_tar(in);
    if (archive_read_open_fd(in, fd.get(), kBlock) != ARCHIVE_OK) return refuse(archive_text());
    for (;;) {
      archive_entry* entry = nullptr;
      int code = archive_read_next_header(in, &entry);
      if (code == ARCHIVE_EOF) break;
      if (code != ARCHIVE_OK) return refuse(archive_text());
      if (manifest_) return refuse("something follows its manifest");
      ATOLL_TRY(take(entry));
    }
    if (!manifest_) return refuse("it has no manifest, so its end is missing");
    ATOLL_TRY(compare());
    return std::move(*manifest_);
  }

 private:
  tl::unexpected<Error> refuse(const std::string& why) const {
    return fail(ErrorCode::InvalidArgument, path_ + " is not a whole backup of Atoll: " + why);
  }

  std::string archive_text() const {
    const char* text = archive_error_string(archive_.get());
    return text == nullptr ? "it cannot be read" : text;
  }

  Result<void> take(archive_entry* entry) {
    const char* name = archive_entry_pathname(entry);
    std::string path = name == nullptr ? "" : name;
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr)
      return refuse("'" + path + "' is not a plain file");
    if (path == kManifestName) return take_manifest();
    if (!is_state_file(path)) return refuse("'" + path + "' does not belong into one");
    if (seen_.contains(path)) return refuse("'" + path + "' comes twice");
    UniqueFd out;
    if (into_ != kCheckOnly) {
      ATOLL_ASSIGN(out, create(path));
    }
    return take_content(path, out);
  }

  Result<void> take_content(const std::string& path, const UniqueFd& out) {
    image::Sha256 hash;
    Seen seen;
    std::vector<char> block(kBlock);
    for (;;) {
      la_ssize_t size = archive_read_data(archive_.get(), block.data(), block.size());
      if (size < 0) return refuse(archive_text());
      if (size == 0) break;
      auto got = static_cast<size_t>(size);
      hash.update(block.data(), got);
      seen.bytes += got;
      if (out.valid()) ATOLL_TRY(os::write_all(out.get(), {block.data(), got}));
    }
    seen.sha256 = hash.finish();
    seen_[path] = std::move(seen);
    return {};
  }

  Result<void> take_manifest() {
    std::string text;
    std::vector<char> block(kBlock);
    for (;;) {
      la_ssize_t size = archive_read_data(archive_.get(), block.data(), block.size());
      if (size < 0) return refuse(archive_text());
      if (size == 0) break;
      text.append(block.data(), static_cast<size_t>(size));
      if (text.size() > kMaxManifestBytes) return refuse("its manifest is too large");
    }
    auto decoded = decode_manifest(text);
    if (!decoded) {
      return fail(std::move(decoded).error().context(path_ + " is not a whole backup of Atoll"));
    }
    manifest_ = std::move(*decoded);
    return {};
  }

  // The directories above it too.
  Result<UniqueFd> create(const std::string& path) const {
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
      ATOLL_TRY(os::make_dir_at(into_, path.substr(0, slash).c_str(), 0700));
    }
    UniqueFd fd(
        openat(into_, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd.valid()) return fail_errno("create", path);
    return fd;
  }

  Result<void> compare() const {
    if (!seen_.contains(std::string(kDatabaseName))) return refuse("it has no database");
    if (manifest_->files.size() != seen_.size())
      return refuse(
          fmt::format("it has {} files, its manifest {}", seen_.size(), manifest_->files.size()));
    for (const File& file : manifest_->files) {
      auto found = seen_.find(file.path);
      if (found == seen_.end()) return refuse("'" + file.path + "' is missing");
      if (found->second.bytes != file.bytes || found->second.sha256 != file.sha256)
        return refuse("'" + file.path + "' is not what its manifest says");
    }
    return {};
  }

  std::string path_;
  int into_;
  std::unique_ptr<archive, FreeArchive> archive_{archive_read_new()};
  std::map<std::string, Seen> seen_;
  std::optional<Manifest> manifest_;
};

}  // namespace

Result<Manifest> read_archive(const std::string& path, int into) {
  return Reader(path, into).read();
}

}  // namespace atl::backup
