#include "image/inflate.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "image/child_report.h"

namespace atl::image {
namespace {

constexpr size_t kReadBlock = 256 * 1024;
constexpr uint32_t kMaxFrame = 1 << 20;

struct FreeReader {
  void operator()(archive* reader) const { archive_read_free(reader); }
};

Error damaged(archive* reader) {
  const char* reason = archive_error_string(reader);
  return Error(ErrorCode::InvalidArgument,
               fmt::format("the archive is damaged or cut short: {}",
                           reason == nullptr ? "unknown error" : reason));
}

Result<void> copy_plain(archive* reader, int socket) {
  for (;;) {
    const void* block = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    int status = archive_read_data_block(reader, &block, &size, &offset);
    if (status == ARCHIVE_EOF) return {};
    if (status != ARCHIVE_OK) return fail(damaged(reader));
    ATOLL_ASSIGN(bool open, send_inflated(socket, {static_cast<const char*>(block), size}));
    if (!open) return fail(ErrorCode::Cancelled, "nobody wants the rest");
  }
}

Result<void> inflate(int socket) {
  std::unique_ptr<archive, FreeReader> reader(archive_read_new());
  if (!reader) return fail(ErrorCode::ResourceExhausted, "out of memory");
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_filter_xz(reader.get());
  archive_read_support_filter_zstd(reader.get());
  archive_read_support_format_raw(reader.get());
  archive_read_support_format_empty(reader.get());
  if (archive_read_open_fd(reader.get(), socket, kReadBlock) != ARCHIVE_OK) {
    return fail(damaged(reader.get()));
  }
  archive_entry* entry = nullptr;
  int status = archive_read_next_header(reader.get(), &entry);
  if (status == ARCHIVE_EOF) return {};
  if (status != ARCHIVE_OK) return fail(damaged(reader.get()));
  return copy_plain(reader.get(), socket);
}

}  // namespace

Compression detect_compression(std::string_view beginning) {
  using namespace std::string_view_literals;
  if (beginning.starts_with("\x1f\x8b"sv)) return Compression::Gzip;
  if (beginning.starts_with("\x28\xb5\x2f\xfd"sv)) return Compression::Zstd;
  if (beginning.starts_with("\xfd\x37zXZ\0"sv)) return Compression::Xz;
  return Compression::None;
}

Result<bool> send_inflated(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, kMaxFrame);
    auto length = static_cast<uint32_t>(part.size());
    ATOLL_ASSIGN(bool open,
                 send_all(socket, reinterpret_cast<const char*>(&length), sizeof length));
    if (!open) return false;
    ATOLL_ASSIGN(open, send_all(socket, part.data(), part.size()));
    if (!open) return false;
    bytes.remove_prefix(part.size());
  }
  return true;
}

void finish_inflated(int socket, const Result<void>& outcome) {
  uint32_t end = 0;
  if (!send_all(socket, reinterpret_cast<const char*>(&end), sizeof end)) return;
  outcome ? send_success(socket, {}) : send_failure(socket, outcome.error());
}

void prepare_inflation() {}

void run_inflation(int socket, const void*) {
  Result<void> inflated = inflate(socket);
  // Bytes after the compressed stream's end still belong to the sender.
  char rest[4096];
  while (inflated && read(socket, rest, sizeof rest) > 0) {
  }
  finish_inflated(socket, inflated);
}

InflatedStream::InflatedStream(int socket)
    : socket_(socket), buffer_(std::make_unique_for_overwrite<char[]>(kMaxFrame)) {}

Result<std::string_view> InflatedStream::next() {
  uint32_t size = 0;
  ATOLL_ASSIGN(size_t got, receive_all(socket_, &size, sizeof size));
  if (got != sizeof size || size > kMaxFrame || size == 0) {
    ATOLL_TRY(read_report(socket_));
    return std::string_view();
  }
  ATOLL_ASSIGN(got, receive_all(socket_, buffer_.get(), size));
  if (got != size) {
    ATOLL_TRY(read_report(socket_));
    return fail(ErrorCode::InvalidArgument, "the archive is cut short");
  }
  return std::string_view(buffer_.get(), size);
}

}  // namespace atl::image
