#include "image/image_documents.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <optional>

#include "image/digest.h"

namespace atl::image {
namespace {

namespace json = boost::json;

constexpr size_t kMaxManifests = 1024;
constexpr size_t kMaxVariables = 1024;
constexpr size_t kMaxArguments = 1024;
constexpr size_t kMaxTextBytes = 64 << 10;
constexpr size_t kMaxSettingsBytes = 64 << 10;

constexpr std::string_view kLayerTypes[] = {
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
};
constexpr std::string_view kConfigTypes[] = {
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
};

tl::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::InvalidArgument, std::move(message));
}

std::string shortened(std::string_view text) { return std::string(text.substr(0, 100)); }

Result<json::value> parse_json(std::string_view text, std::string_view what) {
  if (text.size() > kMaxDocumentBytes) {
    return fail(ErrorCode::TooLarge,
                fmt::format("the {} has more than {} bytes", what, kMaxDocumentBytes));
  }
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error) return bad(fmt::format("the {} is not JSON: {}", what, error.message()));
  return value;
}

Result<json::object> parse_object(std::string_view text, std::string_view what) {
  ATOLL_ASSIGN(json::value value, parse_json(text, what));
  if (!value.is_object()) return bad(fmt::format("the {} is not a JSON object", what));
  return std::move(value.get_object());
}

const json::object* object_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr ? value->if_object() : nullptr;
}

// Empty where it is missing or null; other kinds are refused.
Result<std::string> text_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || value->is_null()) return std::string();
  if (!value->is_string()) return bad(fmt::format("'{}' is not a string", key));
  std::string_view text = value->get_string();
  if (text.size() > kMaxTextBytes || text.find('\0') != text.npos) {
    return bad(fmt::format("'{}' is too long or holds a NUL byte", key));
  }
  return std::string(text);
}

// Null where it is missing or null.
Result<const json::array*> array_at(const json::object& object, std::string_view key, size_t most) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || value->is_null()) return nullptr;
  if (!value->is_array()) return bad(fmt::format("'{}' is not a list", key));
  if (value->get_array().size() > most) {
    return fail(ErrorCode::TooLarge, fmt::format("'{}' has {} entries; {} are the most", key,
                                                 value->get_array().size(), most));
  }
  return &value->get_array();
}

Result<std::vector<std::string>> texts_at(const json::object& object, std::string_view key,
                                          size_t most) {
  ATOLL_ASSIGN(const json::array* list, array_at(object, key, most));
  std::vector<std::string> texts;
  if (list == nullptr) return texts;
  for (const json::value& item : *list) {
    if (!item.is_string()) return bad(fmt::format("'{}' holds something that is no string", key));
    std::string_view text = item.get_string();
    if (text.size() > kMaxTextBytes || text.find('\0') != text.npos) {
      return bad(fmt::format("'{}' holds text that is too long or has a NUL byte", key));
    }
    texts.emplace_back(text);
  }
  return texts;
}

Result<uint64_t> size_at(const json::object& object) {
  const json::value* value = object.if_contains("size");
  if (value == nullptr || !value->is_int64() || value->get_int64() < 0) {
    return bad("a descriptor's 'size' is missing, negative or not a whole number");
  }
  auto size = static_cast<uint64_t>(value->get_int64());
  if (size > kMaxBlobBytes) {
    return fail(ErrorCode::TooLarge,
                fmt::format("a blob of {} bytes; {} are the most", size, kMaxBlobBytes));
  }
  return size;
}

Result<Descriptor> read_descriptor(const json::object& object) {
  Descriptor descriptor;
  ATOLL_ASSIGN(descriptor.media_type, text_at(object, "mediaType"));
  ATOLL_ASSIGN(std::string digest, text_at(object, "digest"));
  ATOLL_ASSIGN(descriptor.digest, parse_digest(digest));
  ATOLL_ASSIGN(descriptor.size, size_at(object));
  return descriptor;
}

template <size_t N>
bool is_one_of(std::string_view text, const std::string_view (&known)[N]) {
  for (std::string_view item : known) {
    if (text == item) return true;
  }
  return false;
}

Result<ImageManifest> read_manifest(const json::object& object) {
  ImageManifest manifest;
  const json::object* config = object_at(object, "config");
  if (config == nullptr) return bad("the manifest has no 'config'");
  ATOLL_ASSIGN(manifest.config, read_descriptor(*config));
  if (!is_one_of(manifest.config.media_type, kConfigTypes)) {
    return fail(ErrorCode::NotSupported, fmt::format("this is not a container image but '{}'",
                                                     shortened(manifest.config.media_type)));
  }
  ATOLL_ASSIGN(const json::array* layers, array_at(object, "layers", kMaxLayers));
  if (layers == nullptr) return bad("the manifest has no 'layers'");
  for (const json::value& item : *layers) {
    if (!item.is_object()) return bad("'layers' holds something that is no descriptor");
    ATOLL_ASSIGN(Descriptor layer, read_descriptor(item.get_object()));
    if (!is_one_of(layer.media_type, kLayerTypes)) {
      return fail(ErrorCode::NotSupported, fmt::format("a layer of the kind '{}' cannot be used",
                                                       shortened(layer.media_type)));
    }
    manifest.layers.push_back(std::move(layer));
  }
  return manifest;
}

Result<ImageIndex> read_index(const json::object& object) {
  ImageIndex index;
  ATOLL_ASSIGN(const json::array* manifests, array_at(object, "manifests", kMaxManifests));
  if (manifests == nullptr) return bad("the index has no 'manifests'");
  for (const json::value& item : *manifests) {
    if (!item.is_object()) return bad("'manifests' holds something that is no descriptor");
    PlatformManifest entry;
    ATOLL_ASSIGN(entry.manifest, read_descriptor(item.get_object()));
    if (const json::object* platform = object_at(item.get_object(), "platform")) {
      ATOLL_ASSIGN(entry.os, text_at(*platform, "os"));
      ATOLL_ASSIGN(entry.architecture, text_at(*platform, "architecture"));
      ATOLL_ASSIGN(entry.variant, text_at(*platform, "variant"));
    }
    index.manifests.push_back(std::move(entry));
  }
  return index;
}

Result<std::map<std::string, std::string>> read_env(const json::object& config) {
  ATOLL_ASSIGN(auto lines, texts_at(config, "Env", kMaxVariables));
  std::map<std::string, std::string> env;
  for (const std::string& line : lines) {
    size_t equals = line.find('=');
    if (equals == 0 || equals == line.npos) {
      return bad(fmt::format("'Env' holds '{}', which is not NAME=VALUE", shortened(line)));
    }
    env[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return env;
}

Result<std::vector<std::string>> read_diff_ids(const json::object& object) {
  const json::object* rootfs = object_at(object, "rootfs");
  if (rootfs == nullptr) return bad("the image's configuration has no 'rootfs'");
  ATOLL_ASSIGN(std::vector<std::string> texts, texts_at(*rootfs, "diff_ids", kMaxLayers));
  std::vector<std::string> diff_ids;
  for (const std::string& text : texts) {
    ATOLL_ASSIGN(std::string hex, parse_digest(text));
    diff_ids.push_back(std::move(hex));
  }
  if (diff_ids.empty()) return bad("the image has no layers");
  return diff_ids;
}

std::string platform_name(const PlatformManifest& entry) {
  std::string name = shortened(entry.os) + "/" + shortened(entry.architecture);
  return entry.variant.empty() ? name : name + "/" + shortened(entry.variant);
}

std::string platforms_of(const ImageIndex& index) {
  constexpr size_t kMost = 16;
  std::string names;
  size_t shown = 0;
  for (const PlatformManifest& entry : index.manifests) {
    if (entry.os.empty() || entry.os == "unknown" || ++shown > kMost) continue;
    names += (names.empty() ? "" : ", ") + platform_name(entry);
  }
  return names.empty() ? "none" : names;
}

}  // namespace

Result<ImageDocument> parse_image_document(std::string_view text) {
  ATOLL_ASSIGN(json::object object, parse_object(text, "manifest"));
  const json::value* version = object.if_contains("schemaVersion");
  if (version != nullptr && (!version->is_int64() || version->get_int64() != 2)) {
    return fail(ErrorCode::NotSupported,
                "the manifest is not of schema version 2; push the image anew with a current tool");
  }
  bool has_manifests = object.contains("manifests");
  // One document that is both would be one image to us and another to somebody else.
  if (has_manifests && (object.contains("layers") || object.contains("config"))) {
    return bad("the document is both a manifest and an index");
  }
  if (has_manifests) {
    ATOLL_ASSIGN(ImageIndex index, read_index(object));
    return index;
  }
  ATOLL_ASSIGN(ImageManifest manifest, read_manifest(object));
  return manifest;
}

std::string_view native_architecture() {
#if defined(__x86_64__)
  return "amd64";
#elif defined(__aarch64__)
  return "arm64";
#else
#error "name this processor as images do"
#endif
}

Result<Descriptor> choose_platform(const ImageIndex& index, std::string_view architecture) {
  std::vector<const PlatformManifest*> fitting;
  for (const PlatformManifest& entry : index.manifests) {
    // A layout with one image need not say what it is for; its configuration does.
    bool alone = index.manifests.size() == 1 && entry.os.empty() && entry.architecture.empty();
    bool fits = entry.os == "linux" && entry.architecture == architecture;
    if (alone || fits) fitting.push_back(&entry);
  }
  if (fitting.size() == 1) return fitting.front()->manifest;
  if (fitting.empty()) {
    return fail(ErrorCode::NotSupported, fmt::format("there is no image for linux/{}; there is: {}",
                                                     architecture, platforms_of(index)));
  }
  // Variants of one processor: the plain one is for all of them.
  for (const PlatformManifest* entry : fitting) {
    if (entry->variant.empty() || entry->variant == "v8") return entry->manifest;
  }
  return fail(ErrorCode::InvalidArgument,
              fmt::format("there are {} images for linux/{}; name one by its digest",
                          fitting.size(), architecture));
}

Result<ImageConfig> parse_image_config(std::string_view text) {
  ATOLL_ASSIGN(json::object object, parse_object(text, "image's configuration"));
  ImageConfig config;
  ATOLL_ASSIGN(config.os, text_at(object, "os"));
  ATOLL_ASSIGN(config.architecture, text_at(object, "architecture"));
  ATOLL_ASSIGN(config.diff_ids, read_diff_ids(object));
  const json::object* run = object_at(object, "config");
  if (run == nullptr) return config;
  ATOLL_ASSIGN(config.env, read_env(*run));
  ATOLL_ASSIGN(config.workdir, text_at(*run, "WorkingDir"));
  ATOLL_ASSIGN(config.user, text_at(*run, "User"));
  ATOLL_ASSIGN(config.entrypoint, texts_at(*run, "Entrypoint", kMaxArguments));
  ATOLL_ASSIGN(config.cmd, texts_at(*run, "Cmd", kMaxArguments));
  size_t bytes = 0;
  for (const auto& [name, value] : config.env) bytes += name.size() + value.size();
  for (const std::string& word : config.entrypoint) bytes += word.size();
  for (const std::string& word : config.cmd) bytes += word.size();
  if (bytes > kMaxSettingsBytes) {
    return fail(ErrorCode::TooLarge,
                fmt::format("the image's environment and command have more than {} bytes",
                            kMaxSettingsBytes));
  }
  if (!config.workdir.empty() && config.workdir.front() != '/') {
    return bad("the image's working directory is not an absolute path");
  }
  return config;
}

Result<std::vector<SavedImage>> parse_saved_images(std::string_view text) {
  ATOLL_ASSIGN(json::value value, parse_json(text, "archive's manifest.json"));
  if (!value.is_array() || value.get_array().empty()) {
    return bad("the archive's manifest.json is not a list of images");
  }
  if (value.get_array().size() > kMaxManifests) {
    return fail(ErrorCode::TooLarge, "the archive's manifest.json lists too many images");
  }
  std::vector<SavedImage> images;
  for (const json::value& item : value.get_array()) {
    if (!item.is_object()) return bad("the archive's manifest.json holds something else");
    SavedImage image;
    ATOLL_ASSIGN(image.config, text_at(item.get_object(), "Config"));
    ATOLL_ASSIGN(image.layers, texts_at(item.get_object(), "Layers", kMaxLayers));
    if (image.config.empty() || image.layers.empty()) {
      return bad("the archive's manifest.json names no configuration or no layers");
    }
    images.push_back(std::move(image));
  }
  return images;
}

}  // namespace atl::image
