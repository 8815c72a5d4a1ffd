// Where this host keeps its control groups. Limits may live on v1 hierarchies or on v2; killing
// and freezing a whole tree is v2's, also on hybrid hosts whose controllers are all on v1.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::os {

enum class CgroupMode { Unified, Hybrid, Legacy };
std::string_view to_string(CgroupMode mode);

struct CgroupMount {
  std::string path;
  std::vector<std::string> controllers;  // empty for v2
};

struct CgroupLayout {
  CgroupMode mode = CgroupMode::Legacy;
  std::string unified;               // the v2 mount; empty where there is none
  std::vector<CgroupMount> legacy;   // the v1 mounts that hold controllers we use
  std::vector<std::string> missing;  // controllers nobody offers: limits that cannot be set
};

// Reads a mountinfo text. `unified_controllers` is the v2 root's cgroup.controllers.
CgroupLayout parse_cgroup_layout(std::string_view mountinfo, std::string_view unified_controllers);
Result<CgroupLayout> detect_cgroups();

}  // namespace atl::os
