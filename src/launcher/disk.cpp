#include "launcher/disk.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/scope_exit.h"
#include "os/syscalls.h"

namespace atl::launcher {
namespace {

constexpr const char* kImage = "disk.img";
constexpr unsigned kLoopMajor = 7;
constexpr int kLockAttempts = 2000;  // a millisecond each

// The device node exists only while it is opened: nobody else has business with it.
Result<UniqueFd> open_loop(int number, std::string& path) {
  path = "/loop" + std::to_string(number);
  dev_t device = makedev(kLoopMajor, static_cast<unsigned>(number));
  if (mknod(path.c_str(), S_IFBLK | 0600, device) != 0 && errno != EEXIST)
    return fail_errno("mknod", path);
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("open", path);
  return fd;
}

// Two mounts of one image would destroy it. The lock belongs to the open file, which the loop
// device holds until the kernel has let go of the last mount: a moment after a sandbox has ended.
Result<void> lock_image(int image) {
  for (int attempt = 0; attempt < kLockAttempts; attempt++) {
    if (flock(image, LOCK_EX | LOCK_NB) == 0) return {};
    if (errno != EWOULDBLOCK) return fail_errno("lock", kImage);
    timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    nanosleep(&pause, nullptr);
  }
  return fail(ErrorCode::Unavailable, "the sandbox's disk is still being released; try again");
}

}  // namespace

Result<DiskImages> DiskImages::open() {
  UniqueFd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  ATOLL_ASSIGN(Formatter formatter, Formatter::start());
  return DiskImages(std::move(control), std::move(formatter));
}

Result<UniqueFd> DiskImages::open_image(int sandbox_dir, uint64_t bytes) {
  UniqueFd image(openat(sandbox_dir, kImage, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (image.valid()) {
    ATOLL_TRY(lock_image(image.get()));
    return image;
  }
  if (errno != ENOENT) return fail_errno("open", kImage);
  // Formatted under another name: an image that is there is whole.
  constexpr const char* kUnfinished = "disk.new";
  image.reset(openat(sandbox_dir, kUnfinished, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!image.valid()) return fail_errno("create", kImage);
  if (ftruncate(image.get(), static_cast<off_t>(bytes)) != 0) return fail_errno("size", kImage);
  ATOLL_TRY(formatter_.format(image.get()));
  if (renameat(sandbox_dir, kUnfinished, sandbox_dir, kImage) != 0)
    return fail_errno("rename", kImage);
  ATOLL_TRY(lock_image(image.get()));
  return image;
}

Result<int> DiskImages::attach_loop(int image) {
  if (!control_.valid()) {
    return fail(ErrorCode::NotSupported, "a disk limit needs loop devices (/dev/loop-control)");
  }
  // Between asking for a free device and taking it somebody else may; then ask again.
  for (int attempt = 0; attempt < 64; attempt++) {
    int number = ioctl(control_.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return fail_errno("find a free loop device");
    std::string path;
    ATOLL_ASSIGN(UniqueFd loop, open_loop(number, path));
    loop_config config{};
    config.fd = static_cast<unsigned>(image);
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (ioctl(loop.get(), LOOP_CONFIGURE, &config) == 0) return loop.release();
    unlink(path.c_str());
    if (errno != EBUSY) return fail_errno("attach", path);
  }
  return fail(ErrorCode::ResourceExhausted, "no free loop device");
}

Result<UniqueFd> DiskImages::mount(int sandbox_dir, uint64_t bytes) {
  ATOLL_ASSIGN(UniqueFd image, open_image(sandbox_dir, bytes));
  ATOLL_ASSIGN(int loop_fd, attach_loop(image.get()));
  UniqueFd loop(loop_fd);
  struct stat info {};
  if (fstat(loop.get(), &info) != 0) return fail_errno("stat", "loop device");
  std::string path = "/loop" + std::to_string(minor(info.st_rdev));
  ScopeExit forget([&] { unlink(path.c_str()); });
  UniqueFd context = os::fsopen("ext4");
  if (!context.valid()) return fail_errno("fsopen", "ext4");
  if (os::fsconfig(context.get(), FSCONFIG_SET_STRING, "source", path.c_str(), 0) != 0 ||
      os::fsconfig(context.get(), FSCONFIG_SET_FLAG, "discard", nullptr, 0) != 0 ||
      os::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return fail_errno("mount", kImage);
  }
  UniqueFd mounted = os::fsmount(context.get(), MOUNT_ATTR_NOATIME | MOUNT_ATTR_NOSUID);
  if (!mounted.valid()) return fail_errno("fsmount", kImage);
  return mounted;
}

}  // namespace atl::launcher
