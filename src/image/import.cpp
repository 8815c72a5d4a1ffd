#include "image/import.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <memory>

#include "image/layer_finish.h"
#include "image/sha256.h"

namespace atl::image {
namespace {

// Part of every layer id: raise them when finish_layer or extraction starts to make something else
// of the same archive.
constexpr int kRootfsFormat = 2;
constexpr int kDiffFormat = 1;
constexpr size_t kDigitsInId = 40;
constexpr size_t kChunk = 256 * 1024;

Result<void> check_digest(const LayerSource& source, const Unpacked& unpacked) {
  if (source.kind == LayerKind::Rootfs) {
    if (unpacked.digest == source.digest) return {};
    return fail(ErrorCode::Conflict, "the archive changed while it was being read; try again");
  }
  if (unpacked.diff_id == source.digest) return {};
  return fail(ErrorCode::InvalidArgument,
              fmt::format("the layer's contents do not match the image: sha256:{} was promised, "
                          "sha256:{} came",
                          source.digest, unpacked.diff_id));
}

Result<ExtractReport> fill_layer(const LayerStore::Room& room, const LayerSource& source,
                                 const ImportLimits& limits, const ByteProgress& progress) {
  UnpackOptions options{.extract = {source.kind, limits.max_bytes, limits.max_entries},
                        .stall_timeout = limits.stall_timeout,
                        .progress = progress};
  ATOLL_ASSIGN(Unpacked unpacked,
               unpack_archive(source.bytes, room.layer.get(), room.nowhere.get(), options));
  ATOLL_TRY(check_digest(source, unpacked));
  if (source.kind == LayerKind::Rootfs) ATOLL_TRY(finish_layer(room.layer.get()));
  ATOLL_TRY(mark_opaque(room.layer.get(), unpacked.report.opaque));
  ATOLL_TRY(note_bytes(room.layer.get(), unpacked.report.bytes));
  return std::move(unpacked.report);
}

Result<void> ensure_places(const LayerStore& store) {
  if (store.has(kPlacesLayer)) return {};
  return store.add(kPlacesLayer, [](const LayerStore::Room& room) -> Result<void> {
    return finish_layer(room.layer.get());
  });
}

Result<void> read_marks(const LayerStore& store, ImportReport& report) {
  ATOLL_ASSIGN(LayerMarks marks, store.marks(report.layer_id));
  report.opaque = marks.opaque;
  report.layer_bytes = marks.bytes;
  return {};
}

}  // namespace

std::string layer_id(LayerKind kind, const std::string& digest) {
  std::string digits = digest.substr(0, kDigitsInId);
  return kind == LayerKind::Rootfs ? fmt::format("{}-{}", digits, kRootfsFormat)
                                   : fmt::format("{}-diff-{}", digits, kDiffFormat);
}

Result<void> check_root() {
  if (geteuid() == 0) return {};
  return fail(ErrorCode::PermissionDenied,
              "importing a root filesystem needs root: run it with sudo");
}

Result<ImportReport> import_layer(const LayerStore& store, const LayerSource& source,
                                  const ImportLimits& limits, const ByteProgress& progress) {
  ATOLL_TRY(check_root());
  ImportReport report{.layer_id = layer_id(source.kind, source.digest),
                      .digest = "sha256:" + source.digest};
  ATOLL_ASSIGN(UniqueFd lock, store.lock());
  if (source.kind == LayerKind::Diff) ATOLL_TRY(ensure_places(store));
  if (store.has(report.layer_id)) {
    report.reused = true;
    ATOLL_TRY(read_marks(store, report));
    return report;
  }
  ExtractReport built;
  ATOLL_TRY(store.add(report.layer_id, [&](const LayerStore::Room& room) -> Result<void> {
    ATOLL_ASSIGN(built, fill_layer(room, source, limits, progress));
    return {};
  }));
  ATOLL_TRY(read_marks(store, report));
  report.entries = built.entries;
  report.bytes = built.bytes;
  report.skipped_devices = built.skipped_devices;
  report.skipped_attributes = built.skipped_attributes;
  return report;
}

Result<ImportReport> import_rootfs(const ImportOptions& options) {
  ATOLL_TRY(check_root());
  ATOLL_ASSIGN(UniqueFd archive, open_archive(options.archive_path));
  LayerSource source;
  ATOLL_ASSIGN(source.bytes, whole_file(archive.get()));
  ATOLL_ASSIGN(source.digest, digest_of(source.bytes));
  ATOLL_ASSIGN(LayerStore store, LayerStore::open(options.layers_dir));
  Result<ImportReport> report = import_layer(store, source, options.limits);
  if (!report) return fail(std::move(report).error().context("importing " + options.archive_path));
  return report;
}

Result<UniqueFd> open_archive(const std::string& path) {
  // O_NONBLOCK: a FIFO in place of the file must not hold us up.
  UniqueFd archive(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!archive.valid()) return fail_errno("open", path);
  struct stat info {};
  if (fstat(archive.get(), &info) != 0) return fail_errno("fstat", path);
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::InvalidArgument, path + " is not a regular file");
  }
  return archive;
}

Result<Range> whole_file(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return fail_errno("fstat", "the archive");
  return Range{.fd = fd, .offset = 0, .size = static_cast<uint64_t>(info.st_size)};
}

Result<std::string> digest_of(const Range& range) {
  Sha256 hash;
  auto buffer = std::make_unique_for_overwrite<char[]>(kChunk);
  for (uint64_t at = 0; at < range.size;) {
    ssize_t size = pread(range.fd, buffer.get(), std::min<uint64_t>(kChunk, range.size - at),
                         static_cast<off_t>(range.offset + at));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("read", "the archive");
    if (size == 0) break;
    hash.update(buffer.get(), static_cast<size_t>(size));
    at += static_cast<uint64_t>(size);
  }
  return hash.finish();
}

}  // namespace atl::image
