#include "storage/layered_view.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace atl::storage {
namespace {

UniqueFd open_inside(int root, const char* path) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(static_cast<int>(syscall(SYS_openat2, root, path, &how, sizeof how)));
}

bool opaque(int fd) {
  // By way of /proc: the descriptor of a path has no attributes of its own.
  std::string self = "/proc/self/fd/" + std::to_string(fd);
  char value[4] = {};
  return getxattr(self.c_str(), "trusted.overlay.opaque", value, sizeof value) == 1 &&
         value[0] == 'y';
}

// Whether a directory above `path` in this layer hides what lies below the layer.
bool hides_below(int layer, const std::string& path) {
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    UniqueFd fd = open_inside(layer, path.substr(0, slash).c_str());
    struct stat info {};
    if (!fd.valid() || fstat(fd.get(), &info) != 0) return false;
    if (!S_ISDIR(info.st_mode) || opaque(fd.get())) return true;
  }
  return false;
}

}  // namespace

bool is_whiteout(const struct stat& info) {
  return S_ISCHR(info.st_mode) && info.st_rdev == makedev(0, 0);
}

bool is_opaque(int parent, const char* name) {
  UniqueFd fd = open_inside(parent, name);
  return fd.valid() && opaque(fd.get());
}

std::optional<LayeredView::Entry> LayeredView::find(const std::string& path) const {
  for (int layer : layers_) {
    UniqueFd fd = open_inside(layer, path.c_str());
    Entry entry{.info = {}, .layer = layer};
    if (fd.valid() && fstat(fd.get(), &entry.info) == 0) {
      if (is_whiteout(entry.info)) return std::nullopt;
      return entry;
    }
    if (hides_below(layer, path)) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace atl::storage
