#include "backup/restore.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "backup/archive_reader.h"
#include "backup/scratch.h"
#include "base/random_id.h"
#include "base/unique_fd.h"
#include "image/tree.h"
#include "os/file.h"
#include "storage/state_pool.h"
#include "store/data_lock.h"
#include "store/offline.h"
#include "store/schema.h"

namespace atl::backup {
namespace {

bool exists_at(int dir, const char* name) { return faccessat(dir, name, F_OK, 0) == 0; }

Result<void> sync(int fd, std::string_view what) {
  if (fsync(fd) != 0) return fail_errno("fsync", what);
  return {};
}

class Restore {
 public:
  explicit Restore(const RestoreOptions& options) : options_(options) {}

  Result<Restored> run() {
    // Once before anything is made, and once more when it is unpacked.
    ATOLL_ASSIGN(result_.manifest, read_archive(options_.file, kCheckOnly));
    ATOLL_TRY(check_version());
    if (mkdir(options_.data_dir.c_str(), 0750) != 0 && errno != EEXIST)
      return fail_errno("mkdir", options_.data_dir);
    ATOLL_ASSIGN(lock_, store::lock_data_dir(options_.data_dir));
    ATOLL_ASSIGN(data_, os::open_dir_at(AT_FDCWD, options_.data_dir.c_str()));
    ATOLL_TRY(check_target());
    ATOLL_ASSIGN(Scratch scratch, Scratch::make(options_.data_dir, ".restore-"));
    from_ = scratch.fd();
    ATOLL_ASSIGN(result_.manifest, read_archive(options_.file, from_));
    ATOLL_TRY(check_version());
    ATOLL_TRY(check_database(scratch.path() + "/" + std::string(kDatabaseName)));
    ATOLL_TRY(own_files());
    auto put = put_in_place();
    if (put) return std::move(result_);
    std::string half =
        result_.aside.empty() ? "" : "; what it has moved so far is in " + result_.aside;
    return fail(Error(put.error().code(), put.error().message() + half));
  }

 private:
  Result<void> check_target() const {
    if (options_.existing == Existing::MoveAside) return {};
    if (!exists_at(data_.get(), kDatabaseName.data())) return {};
    return fail(ErrorCode::Conflict, options_.data_dir +
                                         " has a database; give another --data-dir, or --force to "
                                         "move it aside");
  }

  Result<void> check_version() const {
    const Manifest& manifest = result_.manifest;
    if (manifest.schema <= store::newest_schema()) return {};
    return fail(ErrorCode::NotSupported,
                options_.file + " was made by a newer Atoll (" + manifest.version + ", schema " +
                    std::to_string(manifest.schema) + "); restore it with that version");
  }

  Result<void> check_database(const std::string& path) {
    ATOLL_ASSIGN(store::Facts facts, store::inspect(path));
    if (facts.schema != result_.manifest.schema)
      return fail(ErrorCode::InvalidArgument,
                  options_.file + " is damaged: its database has another schema than it says");
    known_.insert(facts.sandboxes.begin(), facts.sandboxes.end());
    return {};
  }

  // Gives everything its owner and mode, and brings it to the disk.
  Result<void> own_files() {
    for (const File& file : result_.manifest.files) {
      UniqueFd fd(openat(from_, file.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
      if (!fd.valid()) return fail_errno("open", file.path);
      bool root = file.owner == Owner::Root;
      uid_t uid = root ? geteuid() : options_.server_uid;
      if (fchown(fd.get(), uid, options_.server_gid) != 0) return fail_errno("chown", file.path);
      if (fchmod(fd.get(), file.mode) != 0) return fail_errno("chmod", file.path);
      ATOLL_TRY(sync(fd.get(), file.path));
      for (size_t slash = file.path.find('/'); slash != file.path.npos;
           slash = file.path.find('/', slash + 1)) {
        ATOLL_TRY(own_directory(file.path.substr(0, slash)));
      }
    }
    return sync(from_, "the restored files");
  }

  Result<void> own_directory(const std::string& path) {
    ATOLL_ASSIGN(UniqueFd dir, os::open_dir_at(from_, path.c_str()));
    if (fchown(dir.get(), options_.server_uid, options_.server_gid) != 0)
      return fail_errno("chown", path);
    return sync(dir.get(), path);
  }

  // The order matters: files of sandboxes that the new state does not know must be out of a
  // server's reach before that state is there.
  Result<void> put_in_place() {
    ATOLL_TRY(move_unknown_sandboxes());
    ATOLL_TRY(put_state());
    for (const char* part : {"audit", "api-key"}) ATOLL_TRY(put(part));
    return sync(data_.get(), options_.data_dir);
  }

  // Made when the first thing goes there.
  Result<int> aside() {
    if (aside_.valid()) return aside_.get();
    std::string name = "before-restore-" + timestamp_now();
    std::erase_if(name, [](char c) { return c == ':'; });
    name = random_id(name + "-", 4);
    if (mkdirat(data_.get(), name.c_str(), 0700) != 0) return fail_errno("mkdir", name);
    ATOLL_ASSIGN(aside_, os::open_dir_at(data_.get(), name.c_str()));
    result_.aside = options_.data_dir + "/" + name;
    aside_name_ = name;
    return aside_.get();
  }

  Result<void> move_unknown_sandboxes() {
    ATOLL_ASSIGN(auto pool, storage::StatePool::find(options_.data_dir));
    if (!pool) return {};
    ATOLL_ASSIGN(auto names, image::list_directory(pool->sandboxes()));
    for (const std::string& name : names) {
      if (name.starts_with('.') || known_.contains(name)) continue;  // hidden: blank ones
      ATOLL_TRY(aside());
      ATOLL_TRY(pool->set_aside(name, aside_name_));
      result_.unknown_sandboxes.push_back(name);
    }
    std::sort(result_.unknown_sandboxes.begin(), result_.unknown_sandboxes.end());
    if (syncfs(pool->sandboxes()) != 0) return fail_errno("sync", "the pool");
    return {};
  }

  // The database and what belongs to it change places with the old ones at once: a server that
  // found none would begin with an empty one, and clear away every sandbox.
  Result<void> put_state() {
    (void)unlinkat(data_.get(), "state", AT_REMOVEDIR);  // goes where it is empty
    if (!exists_at(data_.get(), "state")) return put("state");
    ATOLL_ASSIGN(int to, aside());
    // By way of `aside`, so that the old one is there the moment it leaves its place.
    if (renameat(from_, "state", to, "state") != 0) return fail_errno("move", "state");
    if (syscall(SYS_renameat2, to, "state", data_.get(), "state", RENAME_EXCHANGE) == 0) return {};
    if (errno != EINVAL) return fail_errno("exchange", "state");
    // A file system that cannot: one after the other.
    if (renameat(to, "state", from_, "state") != 0) return fail_errno("move", "state");
    return put("state");
  }

  Result<void> put(const char* name) {
    if (!exists_at(from_, name)) return {};
    if (exists_at(data_.get(), name)) {
      ATOLL_ASSIGN(int to, aside());
      if (renameat(data_.get(), name, to, name) != 0) return fail_errno("move aside", name);
    }
    if (renameat(from_, name, data_.get(), name) != 0) return fail_errno("put in place", name);
    return {};
  }

  const RestoreOptions& options_;
  UniqueFd lock_;
  UniqueFd data_;
  int from_ = -1;  // the scratch directory
  UniqueFd aside_;
  std::string aside_name_;
  std::set<std::string> known_;
  Restored result_;
};

}  // namespace

Result<Restored> restore(const RestoreOptions& options) { return Restore(options).run(); }

}  // namespace atl::backup
