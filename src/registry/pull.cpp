#include "registry/pull.h"

#include "image/resolve.h"

namespace atl::registry {
namespace {

class RegistryBlobs final : public image::BlobSource {
 public:
  explicit RegistryBlobs(RegistryClient& client) : client_(client) {}

  // Manifests have a place of their own in a registry.
  Result<std::string> document(const image::Descriptor& blob) override {
    bool is_manifest = blob.media_type.find(".manifest.") != std::string::npos ||
                       blob.media_type.find(".index.") != std::string::npos;
    return is_manifest ? client_.manifest(blob) : client_.document(blob);
  }

 private:
  RegistryClient& client_;
};

}  // namespace

Result<image::ImagePlan> pull(const Reference& reference, const PullOptions& options) {
  RegistryClient client(reference, options.registry);
  auto work = [&]() -> Result<image::ImagePlan> {
    ATOLL_ASSIGN(std::string top, client.manifest());
    RegistryBlobs blobs(client);
    ATOLL_ASSIGN(image::ResolvedImage resolved, image::resolve_image(std::move(top), blobs));
    std::vector<image::Descriptor> missing;
    for (size_t i = 0; i < resolved.layers.size(); i++) {
      if (options.have && options.have(resolved.config.diff_ids[i])) continue;
      missing.push_back(resolved.layers[i]);
    }
    ATOLL_TRY(
        download_blobs(client, missing, options.directory, options.progress, options.cancelled));
    return image::plan_of(resolved, image::PlanOrigin::Staged);
  };
  Result<image::ImagePlan> plan = work();
  if (!plan) return fail(std::move(plan).error().context(reference.text()));
  return plan;
}

}  // namespace atl::registry
