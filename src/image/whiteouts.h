// How an image's layer says that something of the layers below is gone: files with special names.
// Overlayfs has its own way: a character device 0:0 in place of the name, and an attribute of the
// directory.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::image {

class Whiteouts {
 public:
  // Whether `path` is such a file, which then is not to be unpacked.
  Result<bool> take(std::string_view path);

  // Makes the devices, in the root directory of the calling process, when all else is unpacked: a
  // layer may remove a name and have one of its own. Returns the directories that hide what lies
  // below them.
  Result<std::vector<std::string>> apply() const;

 private:
  std::set<std::string> removed_;
  std::set<std::string> opaque_;
};

}  // namespace atl::image
