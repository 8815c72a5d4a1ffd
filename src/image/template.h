// Templates: names for stacks of layers, in versions. All versions of one are in one small file,
// <dir>/<name>.json, which is replaced as a whole.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/types.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::image {

struct TemplateDefaults : TemplateSettings {
  // What the image would run; kept for those who ask.
  std::vector<std::string> entrypoint;
  std::vector<std::string> cmd;
  bool operator==(const TemplateDefaults&) const = default;
};

struct Template {
  std::string name;
  // From the bottom up; directory names in the layers directory.
  std::vector<std::string> layers;
  // RFC 3339, UTC.
  std::string created_at;
  // Of what the template was made from.
  std::string digest;
  uint32_t version = 1;
  TemplateDefaults defaults = {};
  uint64_t bytes = 0;       // of all its files; 0: not known
  std::string source = {};  // what it was imported from
  std::vector<std::string> tags = {};

  // "name@version": this one and no other.
  std::string key() const { return name + "@" + std::to_string(version); }
};

// "name" (the newest), "name@version" or "name:tag".
struct TemplateReference {
  std::string name;
  std::optional<uint32_t> version;
  std::string tag;
};
Result<TemplateReference> parse_template_reference(std::string_view text);

// Adds a version, durably, and returns its number; creates `dir` where missing. The manifest's own
// number and tags do not matter.
Result<uint32_t> save_template(const std::string& dir, const Template& manifest);

// TemplateMissing where there is none of that name.
Result<Template> load_template(const std::string& dir, const std::string& reference);

// The newest of each, in order of name. A manifest that cannot be read is an error, a missing
// directory an empty list.
Result<std::vector<Template>> list_templates(const std::string& dir);
// All versions, the newest of each name first.
Result<std::vector<Template>> list_template_versions(const std::string& dir);

// The tag stands for this version from now on, whatever it stood for.
Result<void> tag_template(const std::string& dir, const std::string& reference,
                          const std::string& tag);

// One version where the reference names one, by tag or number, else all of them.
Result<void> remove_template(const std::string& dir, const std::string& reference);
// Those versions.
Result<std::vector<Template>> select_templates(const std::string& dir,
                                               const std::string& reference);

// Whoever is about to use layers that no template names yet holds this, with others; who removes
// layers holds it alone, and gets nothing where others have it.
Result<UniqueFd> hold_layers(const std::string& dir);
Result<std::optional<UniqueFd>> hold_layers_alone(const std::string& dir);

std::string now_rfc3339();

}  // namespace atl::image
