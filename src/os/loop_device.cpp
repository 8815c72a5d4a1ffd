#include "os/loop_device.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <memory>
#include <optional>
#include <string_view>

namespace atl::os {
namespace {

constexpr int kAttempts = 64;
constexpr unsigned kBlockBytes = 4096;

bool stands_for(int loop, const struct stat& image) {
  loop_info64 info{};
  if (ioctl(loop, LOOP_GET_STATUS64, &info) != 0) return false;
  return info.lo_inode == image.st_ino && info.lo_device == image.st_dev;
}

std::optional<LoopDevice> find_attached(const struct stat& image) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir("/sys/block"), closedir);
  if (dir == nullptr) return {};
  while (dirent* item = readdir(dir.get())) {
    std::string_view name = item->d_name;
    if (!name.starts_with("loop")) continue;
    std::string path = "/dev/" + std::string(name);
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (fd.valid() && stands_for(fd.get(), image)) return LoopDevice{path, std::move(fd)};
  }
  return {};
}

}  // namespace

Result<LoopDevice> attach_loop(int image) {
  struct stat info {};
  if (fstat(image, &info) != 0) return fail_errno("stat", "an image");
  if (auto found = find_attached(info)) return std::move(*found);
  UniqueFd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control.valid()) return fail_errno("open", "/dev/loop-control");
  // Between asking for a free device and taking it somebody else may; then ask again.
  for (int attempt = 0; attempt < kAttempts; attempt++) {
    int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return fail_errno("find a free loop device");
    std::string path = "/dev/loop" + std::to_string(number);
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd.valid()) return fail_errno("open", path);
    loop_config config{};
    config.fd = static_cast<unsigned>(image);
    config.block_size = kBlockBytes;
    // Direct: what the file system above has in the page cache need not be there twice.
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
    if (ioctl(fd.get(), LOOP_CONFIGURE, &config) == 0) return LoopDevice{path, std::move(fd)};
    if (errno != EBUSY) return fail_errno("attach", path);
  }
  return fail(ErrorCode::ResourceExhausted, "no free loop device");
}

Result<void> take_new_size(const LoopDevice& device) {
  if (ioctl(device.fd.get(), LOOP_SET_CAPACITY) != 0) return fail_errno("resize", device.path);
  return {};
}

}  // namespace atl::os
