#include "host_cgroups.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace atl::bench {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> cgroup_roots() {
  std::ifstream file("/proc/self/mountinfo");
  std::vector<std::string> roots;
  for (std::string line; std::getline(file, line);) {
    if (line.find(" - cgroup ") == line.npos && line.find(" - cgroup2 ") == line.npos) continue;
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i < 5; i++) fields >> field;
    roots.push_back(field);
  }
  return roots;
}

// Every directory below, parents before children.
std::vector<std::string> directories_below(const std::string& dir) {
  std::vector<std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator it(dir, fs::directory_options::skip_permission_denied, error);
  for (fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (it->is_directory(gone)) found.push_back(it->path());
  }
  return found;
}

}  // namespace

size_t count_cgroups(const std::string& name) {
  size_t count = 0;
  for (const std::string& root : cgroup_roots()) {
    for (const std::string& dir : directories_below(root)) {
      if (dir.find("/" + name) != dir.npos) count++;
    }
  }
  return count;
}

void remove_cgroups(const std::string& name) {
  for (const std::string& root : cgroup_roots()) {
    std::string top = root + "/" + name;
    std::vector<std::string> below = directories_below(top);
    for (auto dir = below.rbegin(); dir != below.rend(); ++dir) rmdir(dir->c_str());
    rmdir(top.c_str());
  }
}

}  // namespace atl::bench
