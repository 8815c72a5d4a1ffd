#include "image/extract.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <limits.h>
#include <locale.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "image/child_report.h"
#include "image/whiteouts.h"
#include "os/id_map.h"
#include "wire/codec.h"

namespace atl::image {
namespace {

constexpr size_t kReadBlock = 256 * 1024;

struct FreeReader {
  void operator()(archive* reader) const { archive_read_free(reader); }
};
struct FreeWriter {
  void operator()(archive* writer) const { archive_write_free(writer); }
};

Error unreadable(archive* reader, std::string_view where) {
  const char* reason = archive_error_string(reader);
  return Error(ErrorCode::InvalidArgument,
               fmt::format("the archive is damaged, cut short or not a tar archive (plain, gzip, "
                           "xz or zstd): {}, {}",
                           reason == nullptr ? "unknown error" : reason, where));
}

Error unwritable(archive* writer, const std::string& path) {
  if (int err = archive_errno(writer); err > 0) return Error::from_errno(err, "extracting", path);
  const char* reason = archive_error_string(writer);
  return Error(ErrorCode::Internal, fmt::format("extracting {}: {}", path,
                                                reason == nullptr ? "unknown error" : reason));
}

// "/./usr//bin/" becomes "usr/bin", the root itself ".". A name with ".." is refused: no honest
// root filesystem has one.
Result<std::string> clean_path(std::string_view raw) {
  std::string path;
  for (size_t begin = 0; begin < raw.size();) {
    size_t end = raw.find('/', begin);
    if (end == std::string_view::npos) end = raw.size();
    std::string_view part = raw.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("the archive names {}, which leads out of the layer", raw));
    }
    if (!path.empty()) path.push_back('/');
    path.append(part);
  }
  if (path.size() >= PATH_MAX) {
    return fail(ErrorCode::InvalidArgument, fmt::format("the archive has a name of {} bytes: {}...",
                                                        path.size(), path.substr(0, 80)));
  }
  if (path.empty()) path = ".";
  return path;
}

bool is_wanted(std::string_view attribute) {
  // user.overlay.* would be read as instructions by an overlay mounted with userxattr.
  return attribute == "security.capability" ||
         (attribute.starts_with("user.") && !attribute.starts_with("user.overlay."));
}

class Extractor {
 public:
  explicit Extractor(const ExtractOptions& options)
      : options_(options), reader_(archive_read_new()), writer_(archive_write_disk_new()) {}

  Result<ExtractReport> run(int input) {
    ATOLL_TRY(open(input));
    archive_entry* entry = nullptr;
    for (;;) {
      int status = archive_read_next_header(reader_.get(), &entry);
      if (status == ARCHIVE_EOF) break;
      // A warning is about a name that is not text in some charset; names are bytes to us.
      if (status < ARCHIVE_WARN || archive_entry_pathname(entry) == nullptr) {
        return fail(unreadable(reader_.get(), position()));
      }
      ATOLL_TRY(extract(entry));
    }
    // Directory modes and times are set last, when nothing more is put into them.
    if (archive_write_close(writer_.get()) != ARCHIVE_OK) {
      return fail(unwritable(writer_.get(), "directory attributes"));
    }
    // A layer may change nothing, a root filesystem is never empty.
    if (report_.entries == 0 && options_.kind == LayerKind::Rootfs) {
      return fail(ErrorCode::InvalidArgument, "the archive is empty");
    }
    ATOLL_ASSIGN(report_.opaque, whiteouts_.apply());
    return report_;
  }

 private:
  Result<void> open(int input) {
    if (!reader_ || !writer_) return fail(ErrorCode::ResourceExhausted, "out of memory");
    archive* reader = reader_.get();
    archive_read_support_format_tar(reader);
    if (options_.kind == LayerKind::Diff) archive_read_support_format_empty(reader);
    archive_write_disk_set_options(
        writer_.get(), ARCHIVE_EXTRACT_OWNER | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME);
    if (archive_read_open_fd(reader, input, kReadBlock) != ARCHIVE_OK) {
      return fail(unreadable(reader, "at its beginning"));
    }
    return {};
  }

  Result<void> extract(archive_entry* entry) {
    ATOLL_ASSIGN(path_, clean_path(archive_entry_pathname(entry)));
    archive_entry_copy_pathname(entry, path_.c_str());
    report_.entries++;
    if (report_.entries > options_.max_entries) {
      return fail(ErrorCode::TooLarge,
                  fmt::format("the archive has more than {} entries", options_.max_entries));
    }
    if (options_.kind == LayerKind::Diff) {
      ATOLL_ASSIGN(bool is_whiteout, whiteouts_.take(path_));
      if (is_whiteout) return {};
    }
    if (is_skipped_kind(entry)) {
      report_.skipped_devices++;
      return {};
    }
    ATOLL_TRY(clean_link(entry));
    ATOLL_TRY(check_owner(entry));
    ATOLL_TRY(count_bytes(archive_entry_size(entry)));
    AttributeMap attributes = take_attributes(entry);
    // A warning here is an owner or a mode that could not be set: not the filesystem we were given.
    if (archive_write_header(writer_.get(), entry) != ARCHIVE_OK) {
      return fail(unwritable(writer_.get(), path_));
    }
    ATOLL_TRY(copy_data());
    if (archive_write_finish_entry(writer_.get()) != ARCHIVE_OK) {
      return fail(unwritable(writer_.get(), path_));
    }
    set_attributes(attributes);
    return {};
  }

  static bool is_skipped_kind(archive_entry* entry) {
    if (archive_entry_hardlink(entry) != nullptr) return false;
    auto kind = archive_entry_filetype(entry);
    return kind == AE_IFCHR || kind == AE_IFBLK || kind == AE_IFSOCK;
  }

  Result<void> clean_link(archive_entry* entry) {
    const char* target = archive_entry_hardlink(entry);
    if (target == nullptr) return {};
    ATOLL_ASSIGN(std::string clean, clean_path(target));
    archive_entry_copy_hardlink(entry, clean.c_str());
    return {};
  }

  Result<void> check_owner(archive_entry* entry) {
    int64_t uid = archive_entry_uid(entry);
    int64_t gid = archive_entry_gid(entry);
    auto fits = [](int64_t id) { return id >= 0 && id < int64_t{os::kIdBlockSize}; };
    if (fits(uid) && fits(gid)) return {};
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{} belongs to {}:{}; a sandbox has ids 0 to {} only: change the "
                            "owner before packing",
                            path_, uid, gid, os::kIdBlockSize - 1));
  }

  // Counts what the entry says it will be, holes included: a sparse file is no way around a limit.
  Result<void> count_bytes(int64_t size) {
    uint64_t bytes = size > 0 ? static_cast<uint64_t>(size) : 0;
    if (bytes <= options_.max_bytes - report_.bytes) {
      report_.bytes += bytes;
      return {};
    }
    return fail(ErrorCode::TooLarge, fmt::format("the archive unpacks to more than {} bytes, at {}",
                                                 options_.max_bytes, path_));
  }

  Result<void> copy_data() {
    for (;;) {
      const void* block = nullptr;
      size_t size = 0;
      la_int64_t offset = 0;
      int status = archive_read_data_block(reader_.get(), &block, &size, &offset);
      if (status == ARCHIVE_EOF) return {};
      if (status != ARCHIVE_OK) return fail(unreadable(reader_.get(), position()));
      if (archive_write_data_block(writer_.get(), block, size, offset) != ARCHIVE_OK) {
        return fail(unwritable(writer_.get(), path_));
      }
    }
  }

  using AttributeMap = std::map<std::string, std::string>;

  // libarchive's own pax archives carry each attribute twice, in two notations.
  AttributeMap take_attributes(archive_entry* entry) {
    AttributeMap attributes;
    const char* name = nullptr;
    const void* value = nullptr;
    size_t size = 0;
    archive_entry_xattr_reset(entry);
    while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
      if (name != nullptr) attributes[name].assign(static_cast<const char*>(value), size);
    }
    return attributes;
  }

  // Last of all, because a change of owner or content clears security.capability.
  void set_attributes(const AttributeMap& attributes) {
    for (const auto& [name, value] : attributes) {
      if (!is_wanted(name) ||
          lsetxattr(path_.c_str(), name.c_str(), value.data(), value.size(), 0) != 0) {
        report_.skipped_attributes++;
      }
    }
  }

  std::string position() const {
    return report_.entries == 0 ? "at its beginning" : fmt::format("after {}", path_);
  }

  ExtractOptions options_;
  std::unique_ptr<archive, FreeReader> reader_;
  std::unique_ptr<archive, FreeWriter> writer_;
  ExtractReport report_;
  Whiteouts whiteouts_;
  std::string path_;
};

}  // namespace

void prepare_extraction() {
  // In the "C" locale libarchive cannot represent the UTF-8 names of pax headers.
  setlocale(LC_CTYPE, "C.UTF-8");
}

void run_extraction(int socket, const void* argument) {
  Result<ExtractReport> result =
      extract_archive(socket, *static_cast<const ExtractOptions*>(argument));
  if (!result) return send_failure(socket, result.error());
  send_success(socket, wire::encode(*result));
}

Result<ExtractReport> decode_report(std::string_view payload) {
  return wire::decode<ExtractReport>(payload);
}

Result<ExtractReport> extract_archive(int input, const ExtractOptions& options) {
  ATOLL_ASSIGN(ExtractReport report, Extractor(options).run(input));
  // Take the padding too, or the sender would see a closed connection.
  static std::array<char, kReadBlock> rest;
  while (read(input, rest.data(), rest.size()) > 0) {
  }
  return report;
}

}  // namespace atl::image
