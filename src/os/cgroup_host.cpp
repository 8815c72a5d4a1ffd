#include "os/cgroup_host.h"

#include <fcntl.h>

#include <algorithm>

#include "os/file.h"

namespace atl::os {
namespace {

constexpr std::string_view kWanted[] = {"memory", "pids", "cpu", "cpuacct"};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    size_t end = text.find(separator);
    if (end != 0) parts.push_back(text.substr(0, end));
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

bool contains(const std::vector<std::string_view>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

struct MountLine {
  std::string_view path, type, options;
};

// "36 35 98:0 /root /mount options fields - type source superoptions"
MountLine parse_line(std::string_view line) {
  auto fields = split(line, ' ');
  auto dash = std::find(fields.begin(), fields.end(), "-");
  if (fields.size() < 5 || fields.end() - dash < 4) return {};
  return {.path = fields[4], .type = dash[1], .options = dash[3]};
}

}  // namespace

std::string_view to_string(CgroupMode mode) {
  switch (mode) {
    case CgroupMode::Unified:
      return "v2";
    case CgroupMode::Hybrid:
      return "hybrid";
    case CgroupMode::Legacy:
      return "v1";
  }
  return "v1";
}

CgroupLayout parse_cgroup_layout(std::string_view mountinfo, std::string_view unified_controllers) {
  CgroupLayout layout;
  std::vector<std::string> found;
  for (std::string_view line : split(mountinfo, '\n')) {
    MountLine mount = parse_line(line);
    if (mount.type == "cgroup2" && layout.unified.empty()) layout.unified = mount.path;
    if (mount.type != "cgroup") continue;
    auto options = split(mount.options, ',');
    CgroupMount entry{.path = std::string(mount.path), .controllers = {}};
    for (std::string_view wanted : kWanted) {
      bool seen = std::find(found.begin(), found.end(), wanted) != found.end();
      if (!contains(options, wanted) || seen) continue;
      entry.controllers.emplace_back(wanted);
      found.emplace_back(wanted);
    }
    if (!entry.controllers.empty()) layout.legacy.push_back(std::move(entry));
  }
  auto on_unified = split(unified_controllers, ' ');
  for (std::string_view wanted : kWanted) {
    if (wanted == "cpuacct") continue;  // v2 always counts cpu time
    bool available = contains(on_unified, wanted) ||
                     std::find(found.begin(), found.end(), wanted) != found.end();
    if (!available) layout.missing.emplace_back(wanted);
  }
  if (layout.unified.empty())
    layout.mode = CgroupMode::Legacy;
  else
    layout.mode = layout.legacy.empty() ? CgroupMode::Unified : CgroupMode::Hybrid;
  return layout;
}

Result<CgroupLayout> detect_cgroups() {
  ATOLL_ASSIGN(std::string mountinfo, read_file_at(AT_FDCWD, "/proc/self/mountinfo"));
  CgroupLayout layout = parse_cgroup_layout(mountinfo, "");
  std::string controllers;
  if (!layout.unified.empty()) {
    auto text = read_file_at(AT_FDCWD, (layout.unified + "/cgroup.controllers").c_str());
    if (text) controllers = *text;
    std::replace(controllers.begin(), controllers.end(), '\n', ' ');
  }
  return parse_cgroup_layout(mountinfo, controllers);
}

}  // namespace atl::os
