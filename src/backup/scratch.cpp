#include "backup/scratch.h"

#include <fcntl.h>

#include "base/random_id.h"
#include "image/tree.h"
#include "os/file.h"

namespace atl::backup {

Result<Scratch> Scratch::make(const std::string& parent, const std::string& prefix) {
  ATOLL_ASSIGN(UniqueFd dir, os::open_dir_at(AT_FDCWD, parent.c_str()));
  ATOLL_ASSIGN(auto names, image::list_directory(dir.get()));
  for (const std::string& name : names) {
    if (name.starts_with(prefix)) ATOLL_TRY(image::remove_tree(dir.get(), name));
  }
  std::string name = random_id(prefix);
  ATOLL_TRY(os::make_dir_at(dir.get(), name.c_str(), 0700));
  Scratch scratch(std::move(dir), name, parent + "/" + name);
  ATOLL_ASSIGN(scratch.fd_, os::open_dir_at(scratch.parent_.get(), name.c_str()));
  return scratch;
}

Scratch::~Scratch() {
  if (parent_.valid()) (void)image::remove_tree(parent_.get(), name_);
}

}  // namespace atl::backup
