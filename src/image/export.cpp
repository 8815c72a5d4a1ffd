#include "image/export.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>
#include <zstd.h>

#include <memory>

#include "image/confined_child.h"
#include "image/extract.h"
#include "image/import.h"
#include "image/inflate.h"
#include "os/file.h"
#include "os/overlay_stage.h"
#include "os/syscalls.h"

namespace atl::image {
namespace {

constexpr int kLevel = 3;

Result<UniqueFd> mount_overlay(const ExportPlan& plan) {
  ATOLL_ASSIGN(os::OverlayStage stage, os::OverlayStage::make(plan.place.c_str()));
  for (const std::string& layer : plan.layers) {
    UniqueFd tree = os::open_tree(AT_FDCWD, layer.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (!tree.valid()) return fail_errno("open_tree", layer);
    ATOLL_TRY(stage.add_lower(tree.get()));
  }
  UniqueFd context = os::fsopen("overlay");
  if (!context.valid()) return fail_errno("fsopen", "overlay");
  if (os::fsconfig(context.get(), FSCONFIG_SET_STRING, "lowerdir", stage.lower().c_str(), 0) != 0) {
    return fail_errno("overlay option", "lowerdir");
  }
  if (os::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return fail_errno("mount", "overlay");
  }
  UniqueFd mounted = os::fsmount(context.get(), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV);
  if (!mounted.valid()) return fail_errno("fsmount", "overlay");
  return mounted;
}

// The layers as a sandbox sees them, in mounts that go with this process.
Result<UniqueFd> merged_layers(const ExportPlan& plan) {
  if (plan.layers.size() == 1) return os::open_dir_at(AT_FDCWD, plan.layers.front().c_str());
  // Descriptors lead to the mounts we leave; paths lead to the new ones.
  if (unshare(CLONE_NEWNS) != 0) return fail_errno("unshare", "mount namespace");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return fail_errno("mount");
  ATOLL_ASSIGN(UniqueFd mounted, mount_overlay(plan));
  const char* place = plan.place.c_str();
  if (os::move_mount(mounted.get(), "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return fail_errno("move_mount", "overlay");
  }
  return mounted;
}

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

// Compresses into a file.
class CompressedFile {
 public:
  explicit CompressedFile(int file)
      : file_(file), context_(ZSTD_createCCtx()), out_(ZSTD_CStreamOutSize(), '\0') {
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }

  Result<void> write(std::string_view bytes, ZSTD_EndDirective mode = ZSTD_e_continue) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (;;) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      size_t left = ZSTD_compressStream2(context_.get(), &out, &in, mode);
      if (ZSTD_isError(left)) return fail(ErrorCode::Internal, ZSTD_getErrorName(left));
      ATOLL_TRY(os::write_all(file_, {out_.data(), out.pos}));
      bool done = mode == ZSTD_e_end ? left == 0 : in.pos == in.size;
      if (done) return {};
    }
  }

 private:
  int file_;
  std::unique_ptr<ZSTD_CCtx, FreeCompressor> context_;
  std::string out_;
};

Result<uint64_t> pack_into(int tree, int file) {
  ConfinedChild::Code code{prepare_extraction, run_packing, nullptr};
  ATOLL_ASSIGN(ConfinedChild child, ConfinedChild::start(tree, code));
  InflatedStream stream(child.socket());
  CompressedFile compressed(file);
  uint64_t total = 0;
  for (;;) {
    ATOLL_ASSIGN(std::string_view bytes, stream.next());
    if (bytes.empty()) break;
    total += bytes.size();
    ATOLL_TRY(compressed.write(bytes));
  }
  ATOLL_TRY(compressed.write({}, ZSTD_e_end));
  return total;
}

}  // namespace

Result<uint64_t> export_layers(const ExportPlan& plan) {
  ATOLL_TRY(check_root());
  ATOLL_ASSIGN(UniqueFd tree, merged_layers(plan));
  ATOLL_ASSIGN(uint64_t bytes, pack_into(tree.get(), plan.file));
  if (fsync(plan.file) != 0) return fail_errno("fsync", "the archive");
  return bytes;
}

}  // namespace atl::image
