// The directory of layers. Each appears whole and durable, or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::image {

// What is written on a layer's root directory.
struct LayerMarks {
  bool opaque = false;  // it hides all that is below it
  uint64_t bytes = 0;   // of its files; 0: not noted
};

class LayerStore {
 public:
  // Created where missing.
  static Result<LayerStore> open(const std::string& path);

  bool has(const std::string& id) const;

  // Waits for its turn: one writer at a time, across processes, for as long as the descriptor
  // lives. Removes what was retired, and what a writer that crashed has left behind.
  Result<UniqueFd> lock() const;

  // Room for a layer that is being made.
  struct Room {
    UniqueFd layer;
    UniqueFd nowhere;  // empty, for children that need no files
  };
  // Gives `fill` an empty layer and publishes what it has made of it as `id`.
  Result<void> add(const std::string& id,
                   const std::function<Result<void>(const Room&)>& fill) const;

  Result<LayerMarks> marks(const std::string& id) const;

  // Puts layers that nobody needs out of the way, while nobody writes; lock() removes them. A disk
  // can take minutes for that.
  Result<void> retire_all_but(const std::set<std::string>& keep) const;

 private:
  LayerStore(std::string path, UniqueFd dir) : path_(std::move(path)), dir_(std::move(dir)) {}

  std::string path_;
  UniqueFd dir_;
};

// Directories of a layer that hide what lies below them, as overlayfs has it. The paths come from
// whoever has parsed the archive.
Result<void> mark_opaque(int layer, const std::vector<std::string>& directories);
Result<void> note_bytes(int layer, uint64_t bytes);

}  // namespace atl::image
