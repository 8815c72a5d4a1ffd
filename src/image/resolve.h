// From an image's topmost document to the list of its layers.
#pragma once

#include <string>
#include <vector>

#include "image/image_documents.h"
#include "image/image_plan.h"

namespace atl::image {

// Where an image's documents are.
class BlobSource {
 public:
  virtual ~BlobSource() = default;
  // The bytes, whoever wrote them; what they should be is checked by who asks.
  virtual Result<std::string> document(const Descriptor& blob) = 0;
};

struct ResolvedImage {
  std::string digest;  // of the manifest
  ImageConfig config;
  std::vector<Descriptor> layers;  // as many as config.diff_ids
};

// `text` is a manifest or an index. Refuses images for other systems and processors, and documents
// that are not what their digests say.
Result<ResolvedImage> resolve_image(std::string text, BlobSource& source);

// Refuses an image for another system or processor.
Result<void> check_platform(const ImageConfig& config);

// A plan with the image's settings and one entry a layer, with diff ids and blobs.
ImagePlan plan_of(const ResolvedImage& image, PlanOrigin origin);

}  // namespace atl::image
