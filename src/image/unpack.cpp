#include "image/unpack.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

#include "image/child_report.h"
#include "image/confined_child.h"
#include "image/inflate.h"
#include "image/sha256.h"
#include "os/file.h"

namespace atl::image {
namespace {

constexpr size_t kChunk = 256 * 1024;
constexpr int kSocketBytes = 1 << 20;

Result<ConfinedChild> start_child(int root, const ConfinedChild::Code& code,
                                  std::chrono::seconds stall) {
  ATOLL_ASSIGN(ConfinedChild child, ConfinedChild::start(root, code));
  timeval limit{stall.count(), 0};
  if (setsockopt(child.socket(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
      setsockopt(child.socket(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) {
    return fail_errno("setsockopt");
  }
  // Larger than the default, so that the two sides wake each other less often.
  setsockopt(child.socket(), SOL_SOCKET, SO_SNDBUF, &kSocketBytes, sizeof kSocketBytes);
  return child;
}

// Reads a range piece by piece and hashes what it gives out.
class RangeReader {
 public:
  explicit RangeReader(const Range& range)
      : range_(range), buffer_(std::make_unique_for_overwrite<char[]>(kChunk)) {}

  // Empty at the end.
  Result<std::string_view> next() {
    uint64_t left = range_.size - taken_;
    if (left == 0) return std::string_view();
    ssize_t size;
    do {
      size = pread(range_.fd, buffer_.get(), std::min<uint64_t>(left, kChunk),
                   static_cast<off_t>(range_.offset + taken_));
    } while (size < 0 && errno == EINTR);
    if (size < 0) return fail_errno("read", "the archive");
    if (size == 0) {
      return fail(ErrorCode::Conflict, "the archive became shorter while it was being read");
    }
    taken_ += static_cast<uint64_t>(size);
    hash_.update(buffer_.get(), static_cast<size_t>(size));
    return std::string_view(buffer_.get(), static_cast<size_t>(size));
  }

  uint64_t taken() const { return taken_; }
  std::string digest() { return hash_.finish(); }

 private:
  Range range_;
  uint64_t taken_ = 0;
  Sha256 hash_;
  std::unique_ptr<char[]> buffer_;
};

// Sends the range to a child; stops early if the child does: its report says why.
Result<std::string> feed(const Range& range, int socket,
                         const std::function<void(uint64_t)>& progress) {
  RangeReader reader(range);
  for (;;) {
    ATOLL_ASSIGN(std::string_view bytes, reader.next());
    if (bytes.empty()) break;
    ATOLL_ASSIGN(bool open, send_all(socket, bytes.data(), bytes.size()));
    if (!open) return reader.digest();
    if (progress) progress(reader.taken());
  }
  shutdown(socket, SHUT_WR);
  return reader.digest();
}

// A child that decompresses, and the thread that feeds it.
class Inflater {
 public:
  static Result<Inflater> start(int nowhere, std::chrono::seconds stall) {
    ConfinedChild::Code code{prepare_inflation, run_inflation, nullptr};
    ATOLL_ASSIGN(ConfinedChild child, start_child(nowhere, code, stall));
    return Inflater(std::move(child));
  }
  Inflater(Inflater&&) = default;
  Inflater& operator=(Inflater&&) = delete;
  ~Inflater() {
    if (!feeder_.joinable()) return;
    child_.kill();
    feeder_.join();
  }

  // Only when no more children are to be started.
  void begin(const Range& range, const std::function<void(uint64_t)>& progress) {
    feeder_ = std::thread([range, progress, socket = child_.socket(), fed = fed_.get()] {
      *fed = feed(range, socket, progress);
    });
  }
  InflatedStream output() { return InflatedStream(child_.socket()); }
  // The digest of the compressed bytes.
  Result<std::string> finish() {
    feeder_.join();
    return std::move(*fed_);
  }

 private:
  explicit Inflater(ConfinedChild child)
      : child_(std::move(child)), fed_(std::make_unique<Result<std::string>>(std::string())) {}

  ConfinedChild child_;
  std::unique_ptr<Result<std::string>> fed_;
  std::thread feeder_;
};

Result<Compression> compression_of(const Range& range) {
  char beginning[8];
  ssize_t size = pread(range.fd, beginning, std::min<uint64_t>(sizeof beginning, range.size),
                       static_cast<off_t>(range.offset));
  if (size < 0) return fail_errno("read", "the archive");
  return detect_compression({beginning, static_cast<size_t>(size)});
}

// What the inflater gives out, on its way to the extractor.
Result<std::string> forward(InflatedStream input, int socket) {
  Sha256 hash;
  for (;;) {
    ATOLL_ASSIGN(std::string_view bytes, input.next());
    if (bytes.empty()) break;
    hash.update(bytes.data(), bytes.size());
    ATOLL_ASSIGN(bool open, send_all(socket, bytes.data(), bytes.size()));
    // Its report says why; the rest of the archive is of no interest.
    if (!open) break;
  }
  shutdown(socket, SHUT_WR);
  return hash.finish();
}

Result<ExtractReport> finish_extraction(ConfinedChild& extractor) {
  ATOLL_ASSIGN(std::string payload, read_report(extractor.socket()));
  ATOLL_ASSIGN(ExtractReport report, decode_report(payload));
  // It has nothing left to do; what it might still try must not race with what follows.
  extractor.kill();
  ATOLL_TRY(extractor.wait());
  return report;
}

}  // namespace

Result<Unpacked> unpack_archive(const Range& archive, int layer, int nowhere,
                                const UnpackOptions& options) {
  ATOLL_ASSIGN(Compression compression, compression_of(archive));
  std::optional<Inflater> inflater;
  if (compression != Compression::None) {
    ATOLL_ASSIGN(Inflater started, Inflater::start(nowhere, options.stall_timeout));
    inflater.emplace(std::move(started));
  }
  ConfinedChild::Code code{prepare_extraction, run_extraction, &options.extract};
  ATOLL_ASSIGN(ConfinedChild extractor, start_child(layer, code, options.stall_timeout));
  Unpacked unpacked;
  if (!inflater) {
    ATOLL_ASSIGN(unpacked.digest, feed(archive, extractor.socket(), options.progress));
    unpacked.diff_id = unpacked.digest;
    ATOLL_ASSIGN(unpacked.report, finish_extraction(extractor));
    return unpacked;
  }
  inflater->begin(archive, options.progress);
  ATOLL_ASSIGN(unpacked.diff_id, forward(inflater->output(), extractor.socket()));
  ATOLL_ASSIGN(unpacked.report, finish_extraction(extractor));
  ATOLL_ASSIGN(unpacked.digest, inflater->finish());
  return unpacked;
}

Result<void> inflate_archive(const Range& archive, int plain, int nowhere, uint64_t max_bytes,
                             const UnpackOptions& options) {
  ATOLL_ASSIGN(Inflater inflater, Inflater::start(nowhere, options.stall_timeout));
  inflater.begin(archive, options.progress);
  InflatedStream output = inflater.output();
  uint64_t total = 0;
  for (;;) {
    ATOLL_ASSIGN(std::string_view bytes, output.next());
    if (bytes.empty()) break;
    total += bytes.size();
    if (total > max_bytes) {
      return fail(ErrorCode::TooLarge,
                  fmt::format("the archive unpacks to more than {} bytes", max_bytes));
    }
    ATOLL_TRY(os::write_all(plain, bytes));
  }
  ATOLL_TRY(inflater.finish());
  return {};
}

Result<std::string> peek_archive(const Range& archive, int nowhere, size_t size,
                                 const UnpackOptions& options) {
  ATOLL_ASSIGN(Compression compression, compression_of(archive));
  std::string beginning;
  if (compression == Compression::None) {
    beginning.resize(std::min<uint64_t>(size, archive.size));
    ssize_t got =
        pread(archive.fd, beginning.data(), beginning.size(), static_cast<off_t>(archive.offset));
    if (got < 0) return fail_errno("read", "the archive");
    beginning.resize(static_cast<size_t>(got));
    return beginning;
  }
  ATOLL_ASSIGN(Inflater inflater, Inflater::start(nowhere, options.stall_timeout));
  inflater.begin(archive, nullptr);
  InflatedStream output = inflater.output();
  while (beginning.size() < size) {
    ATOLL_ASSIGN(std::string_view bytes, output.next());
    if (bytes.empty()) break;
    beginning.append(bytes.substr(0, size - beginning.size()));
  }
  return beginning;
}

}  // namespace atl::image
