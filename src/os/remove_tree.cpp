#include "os/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <memory>

#include "base/random_id.h"
#include "base/unique_fd.h"

namespace atl::os {
namespace {

// Deeper directories are moved to the top first: a sandbox can nest deeper than we have stack or
// descriptors for.
constexpr int kMaxDepth = 64;

using DirHandle = std::unique_ptr<DIR, int (*)(DIR*)>;

bool is_dot(const char* name) {
  return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

void remove_entry(int top, int parent, const char* name, int depth) {
  if (unlinkat(parent, name, 0) == 0 || (errno != EISDIR && errno != EPERM)) return;
  if (depth > kMaxDepth) {
    renameat(parent, name, top, random_id("deep-").c_str());
    return;
  }
  UniqueFd fd(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return;
  DirHandle dir(fdopendir(fd.get()), closedir);
  if (dir == nullptr) return;
  (void)fd.release();
  // Those moved up land in the first directory while it is read: it is read until it is empty.
  int own = dirfd(dir.get());
  int home = depth == 0 ? own : top;
  for (bool again = true; again;) {
    again = false;
    rewinddir(dir.get());
    while (dirent* item = readdir(dir.get())) {
      if (is_dot(item->d_name)) continue;
      remove_entry(home, own, item->d_name, depth + 1);
      bool gone = faccessat(own, item->d_name, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
      again |= gone && depth == 0;
    }
  }
  unlinkat(parent, name, AT_REMOVEDIR);
}

}  // namespace

void remove_tree(int parent, const char* name) { remove_entry(-1, parent, name, 0); }

}  // namespace atl::os
