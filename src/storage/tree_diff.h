// What changed between two states of the same sandbox, or of two on the same layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace atl::storage {

enum class ChangeKind : uint8_t { Added, Changed, Removed };

struct Change {
  ChangeKind kind = ChangeKind::Changed;
  std::string path;  // absolute, as the sandbox sees it
  char type = 'f';   // f(ile), d(irectory), l(ink) or o(ther); of what it is now
  uint64_t size_before = 0;
  uint64_t size_after = 0;
  std::string text;  // the difference line by line, where both are small texts
};

struct DiffPlan {
  int before = -1;  // directories: an upper directory each
  int after = -1;
  std::vector<int> layers;      // what both stand on, topmost first
  size_t max_bytes = 1u << 20;  // of the answer, about
  bool with_texts = false;
};

struct Diff {
  std::vector<Change> changes;  // by path; a removed directory stands for all that was in it
  bool complete = true;         // false: there are more
};

// Looks only at what either state has written, not at the layers' files.
Result<Diff> diff_trees(const DiffPlan& plan);

}  // namespace atl::storage
