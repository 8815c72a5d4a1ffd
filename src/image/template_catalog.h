// Templates for those who ask often: a file is read again only when it has changed.
#pragma once

#include <sys/stat.h>

#include <map>
#include <memory>
#include <string>

#include "image/template_file.h"

namespace atl::image {

class TemplateCatalog {
 public:
  explicit TemplateCatalog(std::string dir) : dir_(std::move(dir)) {}

  // As load_template.
  Result<Template> find(const std::string& reference);

 private:
  struct Known {
    struct stat info {};
    std::shared_ptr<const TemplateFile> file;
  };
  Result<std::shared_ptr<const TemplateFile>> load(const std::string& name);

  std::string dir_;
  std::map<std::string, Known> known_;
};

}  // namespace atl::image
