#include "image/template_catalog.h"

namespace atl::image {
namespace {

constexpr size_t kMaxKnown = 256;

// Files are replaced and never written to, so a new content is a new file.
bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

}  // namespace

Result<std::shared_ptr<const TemplateFile>> TemplateCatalog::load(const std::string& name) {
  struct stat info {};
  bool there = stat((dir_ + "/" + name + ".json").c_str(), &info) == 0;
  auto known = known_.find(name);
  if (known != known_.end() && there && is_same_file(known->second.info, info)) {
    return known->second.file;
  }
  known_.erase(name);
  ATOLL_ASSIGN(TemplateFile file, load_template_file(dir_, name));
  auto shared = std::make_shared<const TemplateFile>(std::move(file));
  if (known_.size() >= kMaxKnown) known_.clear();
  if (there) known_[name] = {info, shared};
  return std::shared_ptr<const TemplateFile>(shared);
}

Result<Template> TemplateCatalog::find(const std::string& reference) {
  ATOLL_ASSIGN(TemplateReference wanted, parse_template_reference(reference));
  ATOLL_ASSIGN(auto file, load(wanted.name));
  ATOLL_ASSIGN(const Template* found, select_version(*file, wanted));
  return *found;
}

}  // namespace atl::image
