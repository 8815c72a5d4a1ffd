// An image of a registry, down to a directory of blobs and a plan of what to do with them.
#pragma once

#include <functional>

#include "image/image_plan.h"
#include "registry/download.h"

namespace atl::registry {

struct PullOptions {
  RegistryOptions registry;
  int directory = -1;  // takes the blobs
  // Layers that are there already, by diff id, need no download.
  std::function<bool(const std::string& diff_id)> have;
  OnDownload progress;
  const std::atomic<bool>* cancelled = nullptr;
};

Result<image::ImagePlan> pull(const Reference& reference, const PullOptions& options);

}  // namespace atl::registry
