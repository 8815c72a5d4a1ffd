#include "image/layout.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/digest.h"
#include "image/resolve.h"
#include "image/sha256.h"
#include "os/file.h"

namespace atl::image {
namespace {

constexpr std::string_view kBlobs = "blobs/sha256/";

Result<std::string> read_range(const Range& range, const std::string& name) {
  if (range.size > kMaxDocumentBytes) {
    return fail(ErrorCode::TooLarge, fmt::format("{} has {} bytes; {} are the most", name,
                                                 range.size, kMaxDocumentBytes));
  }
  std::string text(range.size, '\0');
  for (size_t at = 0; at < text.size();) {
    ssize_t size =
        pread(range.fd, text.data() + at, text.size() - at, static_cast<off_t>(range.offset + at));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("read", name);
    if (size == 0) return fail(ErrorCode::InvalidArgument, name + " is cut short");
    at += static_cast<size_t>(size);
  }
  return text;
}

Result<std::string> read_document(ImageFiles& files, const std::string& name) {
  ATOLL_ASSIGN(Range range, files.find(name));
  return read_range(range, name);
}

Error missing(const std::string& name) {
  return Error(ErrorCode::InvalidArgument, "the image is incomplete: it has no " + name);
}

class LayoutBlobs final : public BlobSource {
 public:
  explicit LayoutBlobs(ImageFiles& files) : files_(files) {}
  Result<std::string> document(const Descriptor& blob) override {
    std::string name = std::string(kBlobs) + blob.digest;
    Result<std::string> text = read_document(files_, name);
    if (!text && text.error().code() == ErrorCode::NotFound) return fail(missing(name));
    return text;
  }

 private:
  ImageFiles& files_;
};

Result<void> place_layer(ImageFiles& files, const std::string& name, PlannedLayer& layer) {
  Result<Range> range = files.find(name);
  if (!range && range.error().code() == ErrorCode::NotFound) return fail(missing(name));
  if (!range) return fail(std::move(range).error());
  if (range->size > kMaxBlobBytes) {
    return fail(ErrorCode::TooLarge,
                fmt::format("{} has {} bytes; {} are the most", name, range->size, kMaxBlobBytes));
  }
  layer.offset = range->offset;
  layer.size = range->size;
  return {};
}

Result<ImagePlan> plan_oci(ImageFiles& files, std::string index, PlanOrigin origin) {
  LayoutBlobs blobs(files);
  ATOLL_ASSIGN(ResolvedImage image, resolve_image(std::move(index), blobs));
  ImagePlan plan = plan_of(image, origin);
  for (PlannedLayer& layer : plan.layers) {
    uint64_t promised = layer.size;
    ATOLL_TRY(place_layer(files, std::string(kBlobs) + layer.blob, layer));
    if (layer.size == promised) continue;
    return fail(ErrorCode::InvalidArgument,
                fmt::format("the layer sha256:{} has {} bytes where {} were promised", layer.blob,
                            layer.size, promised));
  }
  return plan;
}

Result<ImagePlan> plan_saved(ImageFiles& files, const std::string& list, PlanOrigin origin) {
  ATOLL_ASSIGN(std::vector<SavedImage> images, parse_saved_images(list));
  if (images.size() != 1) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("the archive holds {} images; save one alone", images.size()));
  }
  const SavedImage& saved = images.front();
  Result<std::string> text = read_document(files, saved.config);
  if (!text && text.error().code() == ErrorCode::NotFound) return fail(missing(saved.config));
  if (!text) return fail(std::move(text).error());
  Sha256 hash;
  hash.update(text->data(), text->size());
  ResolvedImage image{.digest = hash.finish(), .config = {}, .layers = {}};
  ATOLL_ASSIGN(image.config, parse_image_config(*text));
  ATOLL_TRY(check_platform(image.config));
  if (image.config.diff_ids.size() != saved.layers.size()) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("the manifest has {} layers and the configuration {}",
                            saved.layers.size(), image.config.diff_ids.size()));
  }
  image.layers.resize(saved.layers.size());
  ImagePlan plan = plan_of(image, origin);
  for (size_t i = 0; i < plan.layers.size(); i++) {
    ATOLL_TRY(place_layer(files, saved.layers[i], plan.layers[i]));
  }
  return plan;
}

}  // namespace

Result<UniqueFd> open_layout_file(int directory, const std::string& name) {
  bool known = name == "index.json" || name == "manifest.json" ||
               (name.starts_with(kBlobs) && is_sha256_hex(name.substr(kBlobs.size())));
  if (!known) return fail(ErrorCode::NotFound, "a layout has no file " + name.substr(0, 100));
  ATOLL_ASSIGN(UniqueFd file, os::open_beneath(directory, name.c_str(), O_RDONLY | O_NONBLOCK));
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return fail_errno("fstat", name);
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::InvalidArgument, name + " is not a regular file");
  }
  return file;
}

Result<Range> DirectoryFiles::find(const std::string& name) {
  auto known = files_.find(name);
  if (known == files_.end()) {
    ATOLL_ASSIGN(UniqueFd file, open_(name));
    known = files_.emplace(name, std::move(file)).first;
  }
  struct stat info {};
  if (fstat(known->second.get(), &info) != 0) return fail_errno("fstat", name);
  return Range{.fd = known->second.get(), .offset = 0, .size = static_cast<uint64_t>(info.st_size)};
}

Result<ImagePlan> plan_layout(ImageFiles& files, PlanOrigin origin) {
  Result<std::string> index = read_document(files, "index.json");
  if (index) return plan_oci(files, std::move(*index), origin);
  if (index.error().code() != ErrorCode::NotFound) return fail(std::move(index).error());
  ATOLL_ASSIGN(std::string saved, read_document(files, "manifest.json"));
  return plan_saved(files, saved, origin);
}

}  // namespace atl::image
