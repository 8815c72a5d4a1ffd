#include "backup/create.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "backup/archive_writer.h"
#include "backup/scratch.h"
#include "base/unique_fd.h"
#include "base/version.h"
#include "image/tree.h"
#include "os/file.h"
#include "store/data_lock.h"
#include "store/offline.h"

namespace atl::backup {
namespace {

constexpr int kMaxDepth = 16;

// Adds the file, or all below the directory, that `name` is in `parent`; links and devices are not
// ours. What has gone since it was listed is left out.
Result<void> add_tree(ArchiveWriter& writer, int parent, const std::string& path,
                      Manifest& manifest) {
  std::string name = path.substr(path.rfind('/') + 1);
  UniqueFd fd(openat(parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid() && (errno == ENOENT || errno == ELOOP || errno == ENXIO)) return {};
  if (!fd.valid()) return fail_errno("open", path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return fail_errno("stat", path);
  if (S_ISREG(info.st_mode)) return writer.add(path, fd.get(), manifest);
  bool deep = std::count(path.begin(), path.end(), '/') > kMaxDepth;
  if (!S_ISDIR(info.st_mode) || deep) return {};
  ATOLL_ASSIGN(auto names, image::list_directory(fd.get()));
  std::sort(names.begin(), names.end());
  for (const std::string& below : names) {
    std::string found = path + "/" + below;
    if (!is_state_file(found) || found == kDatabaseName) continue;
    ATOLL_TRY(add_tree(writer, fd.get(), found, manifest));
  }
  return {};
}

Result<void> add_database(ArchiveWriter& writer, const std::string& database, Manifest& manifest) {
  ATOLL_ASSIGN(store::Facts facts, store::inspect(database));
  manifest.schema = facts.schema;
  manifest.sandboxes = facts.sandboxes.size();
  UniqueFd fd(open(database.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("open", database);
  ATOLL_TRY(writer.add(std::string(kDatabaseName), fd.get(), manifest));
  manifest.files.back().owner = Owner::Server;  // whoever made the copy
  return {};
}

}  // namespace

Result<Manifest> write_backup(const std::string& data_dir, const std::string& database, int out) {
  ATOLL_ASSIGN(UniqueFd data, os::open_dir_at(AT_FDCWD, data_dir.c_str()));
  ATOLL_ASSIGN(ArchiveWriter writer, ArchiveWriter::open(out));
  Manifest manifest;
  manifest.version = kVersion;
  manifest.created_at = timestamp_now();
  ATOLL_TRY(add_database(writer, database, manifest));
  for (const char* part : {"state", "audit", "api-key"}) {
    ATOLL_TRY(add_tree(writer, data.get(), part, manifest));
  }
  ATOLL_TRY(writer.finish(manifest));
  return manifest;
}

Result<Manifest> write_offline_backup(const std::string& data_dir, int out) {
  ATOLL_TRY(os::open_dir_at(AT_FDCWD, data_dir.c_str()));
  ATOLL_ASSIGN(UniqueFd lock, store::lock_data_dir(data_dir));
  ATOLL_ASSIGN(Scratch scratch, Scratch::make(data_dir, ".backup-"));
  std::string copy = scratch.path() + "/atoll.db";
  ATOLL_TRY(store::copy_database(data_dir + "/" + std::string(kDatabaseName), copy));
  return write_backup(data_dir, copy, out);
}

}  // namespace atl::backup
