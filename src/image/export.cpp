#include "image/export.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <memory>

#include "base/random_id.h"
#include "base/scope_exit.h"
#include "image/confined_child.h"
#include "image/extract.h"
#include "image/import.h"
#include "image/inflate.h"
#include "image/staging.h"
#include "image/tree.h"
#include "os/file.h"
#include "os/syscalls.h"

namespace atl::image {
namespace {

constexpr int kLevel = 3;

Result<UniqueFd> mount_overlay(const std::string& layers_dir, const Template& manifest) {
  UniqueFd context = os::fsopen("overlay");
  if (!context.valid()) return fail_errno("fsopen", "overlay");
  for (auto layer = manifest.layers.rbegin(); layer != manifest.layers.rend(); ++layer) {
    std::string path = layers_dir + "/" + *layer;
    if (os::fsconfig(context.get(), FSCONFIG_SET_STRING, "lowerdir+", path.c_str(), 0) != 0) {
      return fail_errno("overlay layer", path);
    }
  }
  if (os::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return fail_errno("mount the overlay of", manifest.name);
  }
  UniqueFd mounted = os::fsmount(context.get(), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV);
  if (!mounted.valid()) return fail_errno("fsmount", "overlay");
  return mounted;
}

// The layers as a sandbox sees them, in mounts that go with this process.
Result<UniqueFd> merged_layers(const std::string& layers_dir, const Template& manifest,
                               const std::string& place) {
  if (manifest.layers.size() == 1) {
    std::string only = layers_dir + "/" + manifest.layers.front();
    return os::open_dir_at(AT_FDCWD, only.c_str());
  }
  // Descriptors lead to the mounts we leave; paths lead to the new ones.
  if (unshare(CLONE_NEWNS) != 0) return fail_errno("unshare", "mount namespace");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return fail_errno("mount");
  ATOLL_ASSIGN(UniqueFd mounted, mount_overlay(layers_dir, manifest));
  if (mkdir(place.c_str(), 0700) != 0) return fail_errno("mkdir", place);
  if (os::move_mount(mounted.get(), "", AT_FDCWD, place.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
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

Result<ExportReport> export_template(const std::string& data_dir, const Template& manifest,
                                     const std::string& path) {
  ATOLL_TRY(check_root());
  ATOLL_ASSIGN(UniqueFd hold, hold_layers(data_dir + "/templates"));
  struct stat owner {};
  if (stat((data_dir + "/incoming").c_str(), &owner) != 0) owner = {};
  ATOLL_ASSIGN(Staging staging, Staging::create(data_dir, owner.st_uid, owner.st_gid));
  std::string unfinished = path + random_id(".new-");
  UniqueFd file(open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.valid()) return fail_errno("create", unfinished);
  ScopeExit discard([&] { unlink(unfinished.c_str()); });
  std::string place = data_dir + "/incoming/" + staging.id() + "/merged";
  // Before the staging area goes, which it is mounted in.
  ScopeExit unmount([&] { umount2(place.c_str(), MNT_DETACH); });
  ATOLL_ASSIGN(UniqueFd tree, merged_layers(data_dir + "/layers", manifest, place));
  ExportReport report;
  ATOLL_ASSIGN(report.bytes, pack_into(tree.get(), file.get()));
  if (fsync(file.get()) != 0) return fail_errno("fsync", unfinished);
  if (rename(unfinished.c_str(), path.c_str()) != 0) return fail_errno("rename", path);
  discard.dismiss();
  return report;
}

}  // namespace atl::image
