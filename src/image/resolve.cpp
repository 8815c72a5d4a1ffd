#include "image/resolve.h"

#include <fmt/format.h>

#include "image/digest.h"
#include "image/sha256.h"

namespace atl::image {
namespace {

// An index of indexes of manifests is as deep as it gets.
constexpr int kMaxDepth = 4;

std::string digest_of_text(std::string_view text) {
  Sha256 hash;
  hash.update(text.data(), text.size());
  return hash.finish();
}

Result<std::string> verified(BlobSource& source, const Descriptor& blob) {
  if (blob.size > kMaxDocumentBytes) {
    return fail(ErrorCode::TooLarge, fmt::format("a document of {} bytes; {} are the most",
                                                 blob.size, kMaxDocumentBytes));
  }
  ATOLL_ASSIGN(std::string text, source.document(blob));
  if (text.size() != blob.size) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("sha256:{} has {} bytes where {} were promised", blob.digest,
                            text.size(), blob.size));
  }
  if (std::string digest = digest_of_text(text); digest != blob.digest) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("the contents do not match the image: sha256:{} was promised, "
                            "sha256:{} came",
                            blob.digest, digest));
  }
  return text;
}

Result<ResolvedImage> complete(const ImageManifest& manifest, std::string digest,
                               BlobSource& source) {
  ResolvedImage image{.digest = std::move(digest), .config = {}, .layers = manifest.layers};
  ATOLL_ASSIGN(std::string text, verified(source, manifest.config));
  ATOLL_ASSIGN(image.config, parse_image_config(text));
  ATOLL_TRY(check_platform(image.config));
  if (image.config.diff_ids.size() != image.layers.size()) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("the manifest has {} layers and the configuration {}",
                            image.layers.size(), image.config.diff_ids.size()));
  }
  return image;
}

}  // namespace

Result<void> check_platform(const ImageConfig& config) {
  bool fits = (config.os.empty() || config.os == "linux") &&
              (config.architecture.empty() || config.architecture == native_architecture());
  if (fits) return {};
  return fail(ErrorCode::NotSupported,
              fmt::format("the image is for {}/{}, this host is linux/{}", config.os.substr(0, 32),
                          config.architecture.substr(0, 32), native_architecture()));
}

Result<ResolvedImage> resolve_image(std::string text, BlobSource& source) {
  for (int depth = 0; depth < kMaxDepth; depth++) {
    ATOLL_ASSIGN(ImageDocument document, parse_image_document(text));
    if (auto* manifest = std::get_if<ImageManifest>(&document)) {
      return complete(*manifest, digest_of_text(text), source);
    }
    ATOLL_ASSIGN(Descriptor chosen,
                 choose_platform(std::get<ImageIndex>(document), native_architecture()));
    ATOLL_ASSIGN(text, verified(source, chosen));
  }
  return fail(ErrorCode::InvalidArgument, "the image's indexes are nested too deep");
}

ImagePlan plan_of(const ResolvedImage& image, PlanOrigin origin) {
  ImagePlan plan{.origin = origin, .digest = image.digest};
  for (size_t i = 0; i < image.layers.size(); i++) {
    plan.layers.push_back({.diff_id = image.config.diff_ids[i],
                           .blob = image.layers[i].digest,
                           .offset = 0,
                           .size = image.layers[i].size});
  }
  for (const auto& [name, value] : image.config.env) plan.env.push_back(name + "=" + value);
  plan.workdir = image.config.workdir;
  plan.user = image.config.user;
  plan.entrypoint = image.config.entrypoint;
  plan.cmd = image.config.cmd;
  return plan;
}

Result<void> check_plan(const ImagePlan& plan) {
  auto refuse = [] { return fail(ErrorCode::Internal, "malformed plan of an import"); };
  if (plan.layers.empty() || plan.layers.size() > kMaxLayers) return refuse();
  if (!is_sha256_hex(plan.digest) || plan.origin > PlanOrigin::Staged) return refuse();
  for (const PlannedLayer& layer : plan.layers) {
    bool has_name = plan.origin == PlanOrigin::Archive || is_sha256_hex(layer.blob);
    if (!is_sha256_hex(layer.diff_id) || !has_name || layer.size > kMaxBlobBytes) return refuse();
  }
  return {};
}

}  // namespace atl::image
