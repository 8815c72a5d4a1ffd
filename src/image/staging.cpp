#include "image/staging.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <utility>

#include "base/random_id.h"
#include "image/tree.h"
#include "os/file.h"

namespace atl::image {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

// An import holds the lock of its directory from the moment that it has a name.
void remove_abandoned(int parent) {
  auto names = list_directory(parent);
  if (!names) return;
  for (const std::string& name : *names) {
    auto dir = os::open_beneath(parent, name.c_str(), kDirectory);
    if (!dir || flock(dir->get(), LOCK_EX | LOCK_NB) != 0) continue;
    (void)remove_tree(parent, name);
  }
}

Result<UniqueFd> open_incoming(const std::string& data_dir, uid_t uid, gid_t gid) {
  std::string path = data_dir + "/incoming";
  ATOLL_ASSIGN(UniqueFd parent, open_or_create_directory(path));
  if (geteuid() != 0) return parent;
  if (fchown(parent.get(), uid, gid) != 0) return fail_errno("fchown", path);
  if (fchmod(parent.get(), 0700) != 0) return fail_errno("fchmod", path);
  return parent;
}

}  // namespace

Result<Staging> Staging::create(const std::string& data_dir, uid_t uid, gid_t gid) {
  ATOLL_ASSIGN(UniqueFd parent, open_incoming(data_dir, uid, gid));
  // Between its making and its locking nobody may clean up.
  while (flock(parent.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return fail_errno("flock", "incoming");
  }
  remove_abandoned(parent.get());
  std::string id = random_id("import-", 24);
  if (mkdirat(parent.get(), id.c_str(), 0700) != 0) return fail_errno("mkdirat", id);
  ATOLL_ASSIGN(UniqueFd dir, os::open_beneath(parent.get(), id.c_str(), kDirectory));
  if (geteuid() == 0 && fchown(dir.get(), uid, gid) != 0) return fail_errno("fchown", id);
  if (flock(dir.get(), LOCK_EX | LOCK_NB) != 0) return fail_errno("flock", id);
  flock(parent.get(), LOCK_UN);
  return Staging(std::move(parent), std::move(id), std::move(dir));
}

Result<Staging> Staging::open(const std::string& data_dir, const std::string& id) {
  ATOLL_ASSIGN(UniqueFd parent, os::open_dir_at(AT_FDCWD, (data_dir + "/incoming").c_str()));
  ATOLL_ASSIGN(UniqueFd dir, os::open_beneath(parent.get(), id.c_str(), kDirectory));
  return Staging(UniqueFd(), id, std::move(dir));
}

Staging::Staging(Staging&& other) noexcept
    : parent_(std::move(other.parent_)),
      id_(std::exchange(other.id_, {})),
      dir_(std::move(other.dir_)) {}

Staging::~Staging() {
  if (!id_.empty() && parent_.valid()) (void)remove_tree(parent_.get(), id_);
}

}  // namespace atl::image
