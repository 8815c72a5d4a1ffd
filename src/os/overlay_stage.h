// Layers where overlays of older kernels can see them: mounted, and under names so short that many
// fit into one option.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::os {

class OverlayStage {
 public:
  // Covers `place` and goes there. The caller has a mount namespace of its own, which takes all of
  // this with it.
  static Result<OverlayStage> make(const char* place);

  // A detached tree, below the ones before it.
  Result<void> add_lower(int tree);
  // The value of "lowerdir" for an overlay that is mounted from here.
  const std::string& lower() const { return lower_; }
  // Moves a detached tree to `name`.
  Result<void> place(int tree, const char* name) const;

 private:
  OverlayStage() = default;
  std::string lower_;
  int layers_ = 0;
};

}  // namespace atl::os
