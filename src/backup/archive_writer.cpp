#include "backup/archive_writer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "image/sha256.h"

namespace atl::backup {

static constexpr size_t kBlock = 256 * 1024;

void ArchiveWriter::Free::operator()(archive* made) const { archive_write_free(made); }

Result<ArchiveWriter> ArchiveWriter::open(int fd) {
  ArchiveWriter writer(archive_write_new());
  archive* made = writer.archive_.get();
  ATOLL_TRY(writer.check(archive_write_add_filter_zstd(made)));
  ATOLL_TRY(writer.check(archive_write_set_format_pax_restricted(made)));
  ATOLL_TRY(writer.check(archive_write_open_fd(made, fd)));
  return writer;
}

Result<void> ArchiveWriter::check(int code) const {
  if (code == ARCHIVE_OK) return {};
  int error = archive_errno(archive_.get());
  const char* text = archive_error_string(archive_.get());
  ErrorCode kind = error == ENOSPC ? ErrorCode::NoSpace : ErrorCode::Internal;
  return fail(kind, std::string("writing the backup: ") + (text == nullptr ? "failed" : text));
}

Result<void> ArchiveWriter::begin_entry(const std::string& path, uint64_t bytes, uint32_t mode) {
  struct FreeEntry {
    void operator()(archive_entry* made) const { archive_entry_free(made); }
  };
  std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), path.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), mode);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes));
  archive_entry_set_mtime(entry.get(), time(nullptr), 0);
  return check(archive_write_header(archive_.get(), entry.get()));
}

Result<void> ArchiveWriter::write(const char* bytes, size_t size) {
  la_ssize_t written = archive_write_data(archive_.get(), bytes, size);
  if (written == static_cast<la_ssize_t>(size)) return {};
  return check(ARCHIVE_FATAL);
}

Result<void> ArchiveWriter::add(const std::string& path, int fd, Manifest& manifest) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return fail_errno("stat", path);
  File file;
  file.path = path;
  file.bytes = static_cast<uint64_t>(info.st_size);
  file.mode = info.st_mode & 0777;
  file.owner = info.st_uid == 0 ? Owner::Root : Owner::Server;
  ATOLL_TRY(begin_entry(path, file.bytes, file.mode));
  image::Sha256 hash;
  std::vector<char> block(kBlock);
  for (uint64_t left = file.bytes; left > 0;) {
    ssize_t size = read(fd, block.data(), std::min<uint64_t>(block.size(), left));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("read", path);
    if (size == 0) return fail(ErrorCode::Conflict, path + " was cut short while it was read");
    hash.update(block.data(), static_cast<size_t>(size));
    ATOLL_TRY(write(block.data(), static_cast<size_t>(size)));
    left -= static_cast<uint64_t>(size);
  }
  file.sha256 = hash.finish();
  manifest.files.push_back(std::move(file));
  return {};
}

Result<void> ArchiveWriter::finish(const Manifest& manifest) {
  std::string text = encode_manifest(manifest);
  ATOLL_TRY(begin_entry(std::string(kManifestName), text.size(), 0600));
  ATOLL_TRY(write(text.data(), text.size()));
  return check(archive_write_close(archive_.get()));
}

}  // namespace atl::backup
