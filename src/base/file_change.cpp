#include "base/file_change.h"

namespace atl {

std::string_view to_string(FileChange change) {
  switch (change) {
    case FileChange::Created:
      return "created";
    case FileChange::Modified:
      return "modified";
    case FileChange::Removed:
      return "removed";
    case FileChange::Renamed:
      return "renamed";
    case FileChange::Attributes:
      return "attributes";
    case FileChange::Overflow:
      return "overflow";
  }
  return "overflow";
}

}  // namespace atl
