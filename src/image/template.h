// Templates: names for stacks of layers. Each is one small manifest, <dir>/<name>.json.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "image/import.h"

namespace atl::image {

struct Template {
  std::string name;
  // From the bottom up; directory names in the layers directory.
  std::vector<std::string> layers;
  // RFC 3339, UTC.
  std::string created_at;
  // Of what the template was made from.
  std::string digest;
};

// Writes or replaces the manifest, durably; creates `dir` where missing.
Result<void> save_template(const std::string& dir, const Template& manifest);

// TemplateMissing where there is none of that name.
Result<Template> load_template(const std::string& dir, const std::string& name);

// In order of name. A manifest that cannot be read is an error, a missing directory an empty list.
Result<std::vector<Template>> list_templates(const std::string& dir);

struct TemplateImport {
  Template manifest;
  ImportReport layer;
  // The template stood for exactly this archive before.
  bool reused = false;
};

// import_rootfs into <data_dir>/layers, then <data_dir>/templates/<name>.json on top of it.
Result<TemplateImport> import_template(const std::string& data_dir, const std::string& name,
                                       const std::string& archive_path);

}  // namespace atl::image
