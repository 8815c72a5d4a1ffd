#include "image/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <memory>
#include <vector>

#include "base/random_id.h"
#include "base/scope_exit.h"
#include "os/file.h"

namespace atl::image {
namespace {

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

struct CloseDirectory {
  void operator()(DIR* dir) const { closedir(dir); }
};

// Unlinks what is not a directory; says whether `name` was one and so is still there.
Result<bool> unlink_unless_directory(int parent, const std::string& name) {
  if (unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return false;
  if (errno == EISDIR) return true;
  return fail_errno("unlinkat", name);
}

// Empties `name` in `top`, moving its subdirectories up into `top`: a tree of any depth needs no
// recursion and a constant number of descriptors.
Result<void> flatten(int top, const std::string& name, uint64_t& counter) {
  ATOLL_ASSIGN(UniqueFd dir, os::open_beneath(top, name.c_str(), kOpenDirectory));
  ATOLL_ASSIGN(std::vector<std::string> names, list_directory(dir.get()));
  for (const std::string& child : names) {
    ATOLL_ASSIGN(bool is_directory, unlink_unless_directory(dir.get(), child));
    if (!is_directory) continue;
    // The target may exist: then another number will do.
    while (renameat(dir.get(), child.c_str(), top, std::to_string(++counter).c_str()) != 0) {
      if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR && errno != EINVAL) {
        return fail_errno("renameat", child);
      }
    }
  }
  if (unlinkat(top, name.c_str(), AT_REMOVEDIR) != 0) return fail_errno("unlinkat", name);
  return {};
}

Result<void> set_attributes(int fd, const std::string& name, const Attributes& attributes) {
  if (fchown(fd, attributes.uid, attributes.gid) != 0) return fail_errno("fchown", name);
  if (fchmod(fd, attributes.mode) != 0) return fail_errno("fchmod", name);
  return {};
}

}  // namespace

Result<std::vector<std::string>> list_directory(int dir) {
  int copy = openat(dir, ".", kOpenDirectory);
  if (copy < 0) return fail_errno("openat", ".");
  std::unique_ptr<DIR, CloseDirectory> stream(fdopendir(copy));
  if (!stream) {
    close(copy);
    return fail_errno("fdopendir");
  }
  std::vector<std::string> names;
  while (dirent* entry = readdir(stream.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  return names;
}

Result<void> remove_tree(int parent, const std::string& name) {
  ATOLL_ASSIGN(bool is_directory, unlink_unless_directory(parent, name));
  if (!is_directory) return {};
  ATOLL_ASSIGN(UniqueFd top, os::open_beneath(parent, name.c_str(), kOpenDirectory));
  uint64_t counter = 0;
  for (;;) {
    ATOLL_ASSIGN(std::vector<std::string> names, list_directory(top.get()));
    if (names.empty()) break;
    for (const std::string& child : names) {
      ATOLL_ASSIGN(bool has_children, unlink_unless_directory(top.get(), child));
      if (has_children) ATOLL_TRY(flatten(top.get(), child, counter));
    }
  }
  if (unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0) return fail_errno("unlinkat", name);
  return {};
}

Result<UniqueFd> ensure_directory(int parent, const std::string& name, const Attributes& attributes,
                                  Existing existing) {
  Result<UniqueFd> dir = os::open_beneath(parent, name.c_str(), kOpenDirectory);
  if (dir) {
    if (existing == Existing::Reset) ATOLL_TRY(set_attributes(dir->get(), name, attributes));
    return dir;
  }
  int err = dir.error().sys_errno();
  if (err != ENOENT && err != ENOTDIR && err != ELOOP) return dir;
  ATOLL_TRY(remove_tree(parent, name));
  if (mkdirat(parent, name.c_str(), 0700) != 0) return fail_errno("mkdirat", name);
  ATOLL_ASSIGN(UniqueFd made, os::open_beneath(parent, name.c_str(), kOpenDirectory));
  ATOLL_TRY(set_attributes(made.get(), name, attributes));
  return made;
}

Result<UniqueFd> open_or_create_directory(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string prefix = path.substr(0, slash);
    if (mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno("mkdir", prefix);
    if (slash == std::string::npos) break;
  }
  UniqueFd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return fail_errno("open", path);
  return dir;
}

Result<void> write_file_durably(int dir, const std::string& name, const std::string& content) {
  std::string temporary = random_id(".new-");
  UniqueFd file(openat(dir, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.valid()) return fail_errno("openat", temporary);
  ScopeExit cleanup([&] { unlinkat(dir, temporary.c_str(), 0); });
  ATOLL_TRY(os::write_all(file.get(), content));
  if (fsync(file.get()) != 0) return fail_errno("fsync", temporary);
  if (renameat(dir, temporary.c_str(), dir, name.c_str()) != 0) return fail_errno("renameat", name);
  cleanup.dismiss();
  if (fsync(dir) != 0) return fail_errno("fsync", "the directory of " + name);
  return {};
}

}  // namespace atl::image
