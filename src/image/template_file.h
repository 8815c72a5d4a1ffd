// The file that holds all versions of one template.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "image/template.h"

namespace atl::image {

struct TemplateFile {
  std::string name;
  std::vector<Template> versions;        // ascending
  std::map<std::string, uint32_t> tags;  // to version numbers

  const Template* version(uint32_t number) const;
};

std::string encode_defaults(const TemplateDefaults& defaults);
Result<TemplateDefaults> decode_defaults(std::string_view text);

std::string encode_template_file(const TemplateFile& file);
// TemplateMissing where there is none.
Result<TemplateFile> load_template_file(const std::string& dir, const std::string& name);
Result<const Template*> select_version(const TemplateFile& file, const TemplateReference& wanted);
// Internal for what is not such a file.
Result<TemplateFile> parse_template_file(std::string_view text);

}  // namespace atl::image
