// Templates and states as archives: the launcher packs, this process hands out.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/native/native_backend.h"
#include "image/archive_note.h"
#include "image/staging.h"

namespace atl::native {
namespace {

constexpr size_t kBlock = 256u << 10;

// A file that has lost its name and goes with its reader.
class ArchiveReader final : public FileReader {
 public:
  ArchiveReader(UniqueFd file, uint64_t size) : file_(std::move(file)), block_(kBlock, '\0') {
    entry_.size = size;
  }
  const FileEntry& entry() const override { return entry_; }
  std::optional<uint64_t> size() const override { return entry_.size; }
  Task<Result<std::string_view>> read() override {
    ssize_t size = ::read(file_.get(), block_.data(), block_.size());
    if (size < 0) co_return fail_errno("read", "the archive");
    co_return std::string_view(block_.data(), static_cast<size_t>(size));
  }

 private:
  UniqueFd file_;
  std::string block_;
  FileEntry entry_;
};

Result<std::unique_ptr<FileReader>> open_archive(int staging, const std::string& note) {
  UniqueFd file(openat(staging, wire::kArchiveFile, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid()) return fail_errno("open", wire::kArchiveFile);
  if (!note.empty()) ATOLL_TRY(image::append_note(file.get(), note));
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return fail_errno("stat", wire::kArchiveFile);
  if (lseek(file.get(), 0, SEEK_SET) != 0) return fail_errno("seek", wire::kArchiveFile);
  return std::make_unique<ArchiveReader>(std::move(file), static_cast<uint64_t>(info.st_size));
}

}  // namespace

Task<Result<std::unique_ptr<FileReader>>> NativeBackend::export_archive(ExportInput input) {
  ATOLL_CO_ASSIGN(UniqueFd held, co_await importer_.hold());
  CreateInput pinned;
  pinned.template_key = input.template_key;
  pinned.existing_metadata = std::move(input.metadata);
  wire::ExportRequest request{.staging = {}, .layers = {}, .state = input.state};
  ATOLL_CO_ASSIGN(request.layers, layers_for(pinned));
  ATOLL_CO_ASSIGN(image::Staging staging,
                  image::Staging::create(options_.data_dir, geteuid(), getegid()));
  request.staging = staging.id();
  ATOLL_CO_TRY(co_await launcher_->tell(std::move(request), kNoReplyLimit));
  co_return open_archive(staging.dir(), input.note);
}

}  // namespace atl::native
