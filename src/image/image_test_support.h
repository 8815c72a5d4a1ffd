// Archives and directories for the tests of src/image.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace atl::image {

class TempDir {
 public:
  TempDir() {
    std::string pattern = testing::TempDir() + "/atoll-image-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) abort();
    path_ = pattern;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { std::filesystem::remove_all(path_); }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct Entry {
  std::string path;
  mode_t type = AE_IFREG;
  mode_t mode = 0644;
  std::string content = {};
  std::string symlink = {};
  std::string hardlink = {};
  int64_t uid = 0;
  int64_t gid = 0;
  time_t mtime = 1'000'000'000;
  std::string xattr = {};
  std::string xattr_value = {};
};

inline Entry directory(std::string path, mode_t mode = 0755) {
  return {.path = std::move(path), .type = AE_IFDIR, .mode = mode};
}
inline Entry file(std::string path, std::string content = "x") {
  return {.path = std::move(path), .content = std::move(content)};
}
inline Entry link_to(std::string path, std::string target) {
  return {.path = std::move(path), .type = AE_IFLNK, .mode = 0777, .symlink = std::move(target)};
}
inline Entry hardlink_to(std::string path, std::string target) {
  return {.path = std::move(path), .hardlink = std::move(target)};
}

// Writes a tar archive entry by entry; finished on destruction.
class ArchiveWriter {
 public:
  enum class Compression { None, Gzip, Xz, Zstd, Bzip2 };
  enum class Format { Pax, Gnu };

  explicit ArchiveWriter(const std::string& path, Compression compression = Compression::None,
                         Format format = Format::Pax)
      : writer_(archive_write_new()) {
    switch (compression) {
      case Compression::None:
        archive_write_add_filter_none(writer_);
        break;
      case Compression::Gzip:
        archive_write_add_filter_gzip(writer_);
        break;
      case Compression::Xz:
        archive_write_add_filter_xz(writer_);
        break;
      case Compression::Zstd:
        archive_write_add_filter_zstd(writer_);
        break;
      case Compression::Bzip2:
        archive_write_add_filter_bzip2(writer_);
        break;
    }
    format == Format::Pax ? archive_write_set_format_pax_restricted(writer_)
                          : archive_write_set_format_gnutar(writer_);
    if (archive_write_open_filename(writer_, path.c_str()) != ARCHIVE_OK) abort();
  }
  ArchiveWriter(const ArchiveWriter&) = delete;
  ArchiveWriter& operator=(const ArchiveWriter&) = delete;
  ~ArchiveWriter() { archive_write_free(writer_); }

  ArchiveWriter& add(const Entry& entry) {
    archive_entry* header = archive_entry_new();
    archive_entry_copy_pathname(header, entry.path.c_str());
    archive_entry_set_filetype(header, entry.type);
    archive_entry_set_perm(header, entry.mode);
    archive_entry_set_uid(header, entry.uid);
    archive_entry_set_gid(header, entry.gid);
    archive_entry_set_mtime(header, entry.mtime, 0);
    archive_entry_set_size(header, static_cast<la_int64_t>(entry.content.size()));
    if (!entry.symlink.empty()) archive_entry_copy_symlink(header, entry.symlink.c_str());
    if (!entry.hardlink.empty()) archive_entry_copy_hardlink(header, entry.hardlink.c_str());
    if (!entry.xattr.empty()) {
      archive_entry_xattr_add_entry(header, entry.xattr.c_str(), entry.xattr_value.data(),
                                    entry.xattr_value.size());
    }
    if (archive_write_header(writer_, header) < ARCHIVE_WARN) abort();
    archive_write_data(writer_, entry.content.data(), entry.content.size());
    archive_entry_free(header);
    return *this;
  }

 private:
  archive* writer_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace atl::image
