#include "os/overlay_stage.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <string_view>

#include "os/syscalls.h"

namespace atl::os {

static constexpr size_t kMaxOption = 255;

// A byte that means nothing in the option: so 128 layers fit.
static std::string name_of(int layer) {
  constexpr std::string_view kPlain =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  size_t index = static_cast<size_t>(layer);
  if (index < kPlain.size()) return std::string(1, kPlain[index]);
  return std::string(1, static_cast<char>(0x80 + (index - kPlain.size())));
}

Result<OverlayStage> OverlayStage::make(const char* place) {
  if (mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755") != 0) {
    return fail_errno("mount", place);
  }
  if (chdir(place) != 0) return fail_errno("chdir", place);
  return OverlayStage();
}

Result<void> OverlayStage::place(int tree, const char* name) const {
  if (mkdir(name, 0755) != 0) return fail_errno("mkdir", name);
  if (move_mount(tree, "", AT_FDCWD, name, MOVE_MOUNT_F_EMPTY_PATH) == 0) return {};
  return fail_errno("move_mount", name);
}

Result<void> OverlayStage::add_lower(int tree) {
  std::string name = name_of(layers_++);
  lower_ += (lower_.empty() ? "" : ":") + name;
  if (lower_.size() > kMaxOption) {
    return fail(ErrorCode::NotSupported, "more than 128 layers cannot be mounted here");
  }
  return place(tree, name.c_str());
}

}  // namespace atl::os
