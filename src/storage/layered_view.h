// Files as overlayfs shows them, looked at without a mount: an upper directory above layers, with
// whiteouts and opaque directories.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

namespace atl::storage {

class LayeredView {
 public:
  // Descriptors of directories, the topmost first; they stay the caller's.
  explicit LayeredView(std::vector<int> layers) : layers_(std::move(layers)) {}

  struct Entry {
    struct stat info {};
    int layer = -1;  // descriptor of the layer it is in
  };
  // Follows no link; `path` is relative and clean.
  std::optional<Entry> find(const std::string& path) const;

 private:
  std::vector<int> layers_;
};

bool is_whiteout(const struct stat& info);
bool is_opaque(int parent, const char* name);

}  // namespace atl::storage
