// Documents of images as a registry or an archive could hold them. The first byte chooses which
// kind the rest is; what passes keeps to the bounds that the importer relies on.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/random_id.h"
#include "image/digest.h"
#include "image/image_documents.h"
#include "image/layout.h"
#include "image/template_file.h"
#include "registry/challenge.h"
#include "registry/reference.h"

namespace {

using namespace atl;

void require(bool condition) {
  if (!condition) abort();
}

void check(const image::Descriptor& blob) {
  require(image::is_sha256_hex(blob.digest));
  require(blob.size <= image::kMaxBlobBytes);
}

void check_document(std::string_view text) {
  auto document = image::parse_image_document(text);
  if (!document) return;
  if (auto* manifest = std::get_if<image::ImageManifest>(&*document)) {
    check(manifest->config);
    require(manifest->layers.size() <= image::kMaxLayers);
    for (const auto& layer : manifest->layers) check(layer);
    return;
  }
  const auto& index = std::get<image::ImageIndex>(*document);
  for (const auto& entry : index.manifests) check(entry.manifest);
  if (auto chosen = image::choose_platform(index, "amd64")) check(*chosen);
}

void check_config(std::string_view text) {
  auto config = image::parse_image_config(text);
  if (!config) return;
  require(!config->diff_ids.empty() && config->diff_ids.size() <= image::kMaxLayers);
  for (const auto& diff_id : config->diff_ids) require(image::is_sha256_hex(diff_id));
  for (const auto& [name, value] : config->env) {
    require(!name.empty() && name.find('=') == name.npos && name.find('\0') == name.npos);
    require(value.find('\0') == value.npos);
  }
  require(config->workdir.empty() || config->workdir.front() == '/');
}

void check_saved(std::string_view text) {
  auto images = image::parse_saved_images(text);
  if (!images) return;
  for (const auto& saved : *images) {
    require(!saved.config.empty() && !saved.layers.empty());
    require(saved.layers.size() <= image::kMaxLayers);
  }
}

// What was read is written and read again as the same.
void check_template(std::string_view text) {
  auto file = image::parse_template_file(text);
  if (!file) return;
  for (const auto& version : file->versions) {
    for (const auto& layer : version.layers) require(is_valid_id(layer));
  }
  std::string once = image::encode_template_file(*file);
  auto again = image::parse_template_file(once);
  require(again.has_value() && image::encode_template_file(*again) == once);
}

void check_names(std::string_view text) {
  if (auto reference = registry::parse_reference(text)) {
    auto again = registry::parse_reference(reference->text());
    require(again.has_value() && again->text() == reference->text());
    require(reference->repository.find("..") == std::string::npos ||
            reference->repository.find("/../") == std::string::npos);
    for (char c : reference->repository + reference->selector() + reference->host) {
      require(c > ' ' && c < 0x7f && c != '?' && c != '#' && c != '%');
    }
  }
  if (auto challenge = registry::parse_challenge(text)) (void)registry::token_url(*challenge, "s");
  (void)image::parse_template_reference(text);
  (void)image::may_be_image(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'm':
      check_document(input);
      break;
    case 'c':
      check_config(input);
      break;
    case 's':
      check_saved(input);
      break;
    case 't':
      check_template(input);
      break;
    default:
      check_names(input);
  }
  return 0;
}
