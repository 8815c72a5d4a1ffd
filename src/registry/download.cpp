#include "registry/download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/unique_fd.h"
#include "image/sha256.h"
#include "os/file.h"

namespace atl::registry {
namespace {

constexpr size_t kConnections = 4;
constexpr int kMaxAttempts = 5;
constexpr int kMaxRestarts = 100;
constexpr int kFirstPauseMs = 100;
constexpr size_t kBlock = 256 * 1024;

bool is_worth_retrying(ErrorCode code) {
  return code == ErrorCode::Unavailable || code == ErrorCode::Timeout;
}

class Downloads {
 public:
  Downloads(RegistryClient& client, const std::vector<image::Descriptor>& blobs, int directory,
            const OnDownload& progress, const std::atomic<bool>* cancelled)
      : client_(client), directory_(directory), progress_(progress), cancelled_(cancelled) {
    std::set<std::string> seen;
    for (const image::Descriptor& blob : blobs) {
      // An image may have the same layer twice.
      if (!seen.insert(blob.digest).second) continue;
      blobs_.push_back(blob);
      state_.total += blob.size;
    }
    state_.blobs = blobs_.size();
  }

  Result<void> run() {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < std::min(kConnections, blobs_.size()); i++) {
      threads.emplace_back([this] { work(); });
    }
    for (std::thread& thread : threads) thread.join();
    if (failure_) return fail(std::move(*failure_));
    return {};
  }

 private:
  void work() {
    for (;;) {
      size_t next = next_.fetch_add(1);
      if (next >= blobs_.size() || stopped()) return;
      Result<void> fetched = fetch(blobs_[next]);
      std::lock_guard lock(mutex_);
      if (!fetched) {
        stop_ = true;
        if (!failure_) failure_ = std::move(fetched).error();
        return;
      }
      state_.blobs_done++;
      if (progress_) progress_(state_);
    }
  }

  bool stopped() const { return stop_.load() || (cancelled_ != nullptr && cancelled_->load()); }

  // One blob and how much of it is there.
  struct Partial {
    const image::Descriptor& blob;
    UniqueFd file;
    std::optional<image::Sha256> hash;
    uint64_t size = 0;
  };

  Result<void> fetch(const image::Descriptor& blob) {
    std::string temporary = "." + blob.digest;
    Partial partial{.blob = blob, .file = {}, .hash = {}};
    partial.file.reset(openat(directory_, temporary.c_str(),
                              O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!partial.file.valid()) return fail_errno("openat", temporary);
    partial.hash.emplace();
    Result<void> fetched = fetch_persistently(partial);
    if (!fetched) return fail(std::move(fetched).error().context("layer sha256:" + blob.digest));
    if (std::string digest = partial.hash->finish(); digest != blob.digest) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("the layer's contents do not match the image: sha256:{} was "
                              "promised, sha256:{} came",
                              blob.digest, digest));
    }
    if (renameat(directory_, temporary.c_str(), directory_, blob.digest.c_str()) != 0) {
      return fail_errno("renameat", blob.digest);
    }
    return {};
  }

  Result<void> fetch_persistently(Partial& partial) {
    int restarts = 0;
    for (int attempt = 1;; attempt++) {
      uint64_t before = partial.size;
      Result<void> fetched = fetch_rest(partial);
      if (fetched) return fetched;
      if (partial.size > before) attempt = 1;  // it moves, if not in one piece
      if (attempt == kMaxAttempts || ++restarts == kMaxRestarts || stopped() ||
          !is_worth_retrying(fetched.error().code())) {
        return fetched;
      }
      poll(nullptr, 0, kFirstPauseMs << attempt);
    }
  }

  Result<void> fetch_rest(Partial& partial) {
    uint64_t offset = partial.size;
    if (offset == partial.blob.size) return {};
    ATOLL_ASSIGN(http::ResponseStream response, client_.blob(partial.blob, offset));
    if (offset != partial.size) ATOLL_TRY(start_over(partial));
    auto buffer = std::make_unique_for_overwrite<char[]>(kBlock);
    for (;;) {
      if (stopped()) return fail(ErrorCode::Cancelled, "the download was given up");
      ATOLL_ASSIGN(size_t got, response.read(std::span(buffer.get(), kBlock)));
      if (got == 0) break;
      if (got > partial.blob.size - partial.size) {
        return fail(ErrorCode::InvalidArgument,
                    fmt::format("the registry sends more than the {} bytes that were promised",
                                partial.blob.size));
      }
      ATOLL_TRY(os::write_all(partial.file.get(), {buffer.get(), got}));
      partial.hash->update(buffer.get(), got);
      partial.size += got;
      note(static_cast<int64_t>(got));
    }
    if (partial.size == partial.blob.size) return {};
    return fail(ErrorCode::Unavailable, fmt::format("the connection ended after {} of {} bytes",
                                                    partial.size, partial.blob.size));
  }

  Result<void> start_over(Partial& partial) {
    note(-static_cast<int64_t>(partial.size));
    partial.size = 0;
    partial.hash.emplace();
    if (ftruncate(partial.file.get(), 0) != 0 || lseek(partial.file.get(), 0, SEEK_SET) != 0) {
      return fail_errno("ftruncate");
    }
    return {};
  }

  void note(int64_t bytes) {
    std::lock_guard lock(mutex_);
    state_.bytes += static_cast<uint64_t>(bytes);
    if (progress_) progress_(state_);
  }

  RegistryClient& client_;
  std::vector<image::Descriptor> blobs_;
  int directory_;
  const OnDownload& progress_;
  const std::atomic<bool>* cancelled_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  DownloadProgress state_;
  std::optional<Error> failure_;
};

}  // namespace

Result<void> download_blobs(RegistryClient& client, const std::vector<image::Descriptor>& blobs,
                            int directory, const OnDownload& progress,
                            const std::atomic<bool>* cancelled) {
  return Downloads(client, blobs, directory, progress, cancelled).run();
}

}  // namespace atl::registry
