// The JSON documents that describe images: OCI and Docker (schema 2) manifests, indexes and
// configurations, and the list in a `docker save` archive. All of it is written by strangers:
// what is not understood is refused, and every count and size has a bound.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace atl::image {

inline constexpr size_t kMaxDocumentBytes = size_t{4} << 20;
inline constexpr size_t kMaxLayers = 128;
inline constexpr uint64_t kMaxBlobBytes = uint64_t{16} << 30;

// A blob by its content.
struct Descriptor {
  std::string media_type;
  std::string digest;  // 64 hex digits
  uint64_t size = 0;
};

struct PlatformManifest {
  Descriptor manifest;
  std::string os;
  std::string architecture;
  std::string variant;
};

// Manifests of one image for several platforms, or of several images.
struct ImageIndex {
  std::vector<PlatformManifest> manifests;
};

struct ImageManifest {
  Descriptor config;
  std::vector<Descriptor> layers;  // from the bottom up
};

using ImageDocument = std::variant<ImageIndex, ImageManifest>;

// A manifest or an index, whichever it is.
Result<ImageDocument> parse_image_document(std::string_view text);

// "amd64", "arm64": as images call the processor this program was built for.
std::string_view native_architecture();

// The one for linux on `architecture`. NotSupported names what there is instead.
Result<Descriptor> choose_platform(const ImageIndex& index, std::string_view architecture);

struct ImageConfig {
  std::string os;
  std::string architecture;
  std::vector<std::string> diff_ids;  // hex digits, from the bottom up
  std::map<std::string, std::string> env;
  std::string workdir;
  std::string user;
  std::vector<std::string> entrypoint;
  std::vector<std::string> cmd;
};
Result<ImageConfig> parse_image_config(std::string_view text);

// One image of manifest.json in an archive of `docker save`: names of the archive's members.
struct SavedImage {
  std::string config;
  std::vector<std::string> layers;
};
Result<std::vector<SavedImage>> parse_saved_images(std::string_view text);

}  // namespace atl::image
