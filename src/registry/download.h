// Blobs of a registry into files, several at a time.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "registry/registry_client.h"

namespace atl::registry {

// How far all downloads together have come.
struct DownloadProgress {
  uint64_t bytes = 0;
  uint64_t total = 0;
  size_t blobs_done = 0;
  size_t blobs = 0;
};
// Called from several threads, one at a time.
using OnDownload = std::function<void(const DownloadProgress&)>;

// Each blob becomes a file in `directory`, named by its digest, which it is verified against as it
// comes. Four at a time; a cut connection is taken up where it broke, a few times over. The first
// failure ends the others. `cancelled` may be set at any time.
Result<void> download_blobs(RegistryClient& client, const std::vector<image::Descriptor>& blobs,
                            int directory, const OnDownload& progress,
                            const std::atomic<bool>* cancelled = nullptr);

}  // namespace atl::registry
