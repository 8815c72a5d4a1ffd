// The members of a tar archive, by name and place.
#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "image/digest.h"
#include "image/layout.h"

namespace atl::image {
namespace {

constexpr size_t kMaxMembers = 10'000;
constexpr size_t kMaxNameBytes = 1024;
constexpr int kMaxLinks = 8;
constexpr size_t kReadBlock = 64 * 1024;

struct FreeReader {
  void operator()(archive* reader) const { archive_read_free(reader); }
};

// "./a//b" and "a/b" are one name. Names are only looked up, never opened.
std::string cleaned(std::string_view raw) {
  std::string name;
  for (size_t begin = 0; begin < raw.size();) {
    size_t end = std::min(raw.find('/', begin), raw.size());
    std::string_view part = raw.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      name.erase(name.find_last_of('/') == name.npos ? 0 : name.find_last_of('/'));
      continue;
    }
    if (!name.empty()) name.push_back('/');
    name.append(part);
  }
  return name;
}

// What a link in the member `name` leads to.
std::string target_of(const std::string& name, std::string_view link) {
  size_t slash = name.find_last_of('/');
  std::string directory = slash == name.npos ? "" : name.substr(0, slash + 1);
  return cleaned(directory + std::string(link));
}

Error unreadable(archive* reader) {
  const char* reason = archive_error_string(reader);
  return Error(ErrorCode::InvalidArgument,
               fmt::format("the archive is damaged or cut short: {}",
                           reason == nullptr ? "unknown error" : reason));
}

}  // namespace

Result<TarFiles> TarFiles::scan(int archive_fd) {
  TarFiles files(archive_fd);
  if (lseek(archive_fd, 0, SEEK_SET) != 0) return fail_errno("lseek", "the archive");
  std::unique_ptr<archive, FreeReader> reader(archive_read_new());
  if (!reader) return fail(ErrorCode::ResourceExhausted, "out of memory");
  archive_read_support_format_tar(reader.get());
  if (archive_read_open_fd(reader.get(), archive_fd, kReadBlock) != ARCHIVE_OK) {
    return fail(unreadable(reader.get()));
  }
  archive_entry* entry = nullptr;
  for (;;) {
    int status = archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) return files;
    if (status < ARCHIVE_WARN || archive_entry_pathname(entry) == nullptr) {
      return fail(unreadable(reader.get()));
    }
    std::string name = cleaned(archive_entry_pathname(entry));
    if (name.size() > kMaxNameBytes || files.members_.size() >= kMaxMembers) {
      return fail(ErrorCode::NotFound, "the archive has too many members for an image");
    }
    Member member;
    if (const char* link = archive_entry_hardlink(entry)) {
      member.link = cleaned(link);
    } else if (archive_entry_filetype(entry) == AE_IFLNK && archive_entry_symlink(entry)) {
      member.link = target_of(name, archive_entry_symlink(entry));
    } else if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_sparse_count(entry) > 0) {
      continue;
    }
    // The header has been consumed and nothing of the content.
    member.offset = static_cast<uint64_t>(archive_filter_bytes(reader.get(), 0));
    member.size = static_cast<uint64_t>(std::max<int64_t>(archive_entry_size(entry), 0));
    files.members_[name] = std::move(member);
  }
}

Result<Range> TarFiles::find(const std::string& name) {
  std::string wanted = cleaned(name);
  for (int links = 0; links <= kMaxLinks; links++) {
    auto found = members_.find(wanted);
    if (found == members_.end()) return fail(ErrorCode::NotFound, "the archive has no " + wanted);
    const Member& member = found->second;
    if (member.link.empty()) {
      return Range{.fd = archive_, .offset = member.offset, .size = member.size};
    }
    wanted = member.link;
  }
  return fail(ErrorCode::InvalidArgument, "the archive's links lead in circles at " + name);
}

// Skips the headers that are about the next one: times and the like.
static std::string_view first_header(std::string_view archive) {
  constexpr size_t kBlock = 512, kSizeAt = 124, kSizeDigits = 11, kTypeAt = 156;
  while (archive.size() >= kBlock) {
    char type = archive[kTypeAt];
    if (type != 'x' && type != 'g') return archive.substr(0, kBlock);
    uint64_t size = 0;
    for (char digit : archive.substr(kSizeAt, kSizeDigits)) {
      if (digit < '0' || digit > '7') return {};
      size = size * 8 + static_cast<uint64_t>(digit - '0');
    }
    archive.remove_prefix(std::min<uint64_t>(archive.size(), kBlock + (size + 511) / 512 * 512));
  }
  return {};
}

bool may_be_image(std::string_view beginning) {
  constexpr size_t kNameBytes = 100;
  std::string_view name = first_header(beginning).substr(0, kNameBytes);
  name = name.substr(0, name.find('\0'));
  if (name.starts_with("./")) name.remove_prefix(2);
  for (std::string_view known :
       {"blobs/", "index.json", "manifest.json", "oci-layout", "repositories", "sha256:"}) {
    if (name.starts_with(known)) return true;
  }
  return is_sha256_hex(name.substr(0, 64));
}

}  // namespace atl::image
