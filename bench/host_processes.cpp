#include "host_processes.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace atl::bench {
namespace {

namespace fs = std::filesystem;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<pid_t> all_pids() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename();
    pid_t pid = 0;
    auto [rest, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed == std::errc() && rest == name.data() + name.size()) pids.push_back(pid);
  }
  return pids;
}

pid_t parent_of(pid_t pid) {
  std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
  size_t name_end = stat.rfind(')');
  if (name_end == stat.npos || name_end + 4 >= stat.size()) return 0;
  pid_t parent = 0;
  std::from_chars(stat.data() + name_end + 4, stat.data() + stat.size(), parent);
  return parent;
}

std::string link_text(const std::string& path) {
  std::error_code error;
  fs::path target = fs::read_symlink(path, error);
  return error ? "" : target.string();
}

void add_namespaces(pid_t pid, std::set<std::string>& into) {
  std::string dir = "/proc/" + std::to_string(pid) + "/ns";
  for (const char* kind : {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"}) {
    std::string text = link_text(dir + "/" + kind);
    if (!text.empty()) into.insert(text);
  }
}

}  // namespace

std::vector<HostProcess> our_processes(const std::string& cgroup) {
  std::vector<pid_t> pids = all_pids();
  std::map<pid_t, pid_t> parents;
  for (pid_t pid : pids) parents[pid] = parent_of(pid);
  auto is_descendant = [&](pid_t pid) {
    for (int depth = 0; depth < 64 && pid > 1; depth++) {
      auto found = parents.find(pid);
      if (found == parents.end()) return false;
      pid = found->second;
      if (pid == getpid()) return true;
    }
    return false;
  };
  std::string own_pid_namespace = link_text("/proc/self/ns/pid");
  std::vector<HostProcess> ours;
  for (pid_t pid : pids) {
    std::string dir = "/proc/" + std::to_string(pid);
    if (!is_descendant(pid) && read_text(dir + "/cgroup").find("/" + cgroup) == std::string::npos) {
      continue;
    }
    std::string pid_namespace = link_text(dir + "/ns/pid");
    ours.push_back({pid, !pid_namespace.empty() && pid_namespace != own_pid_namespace});
  }
  return ours;
}

std::set<std::string> namespaces_of(const std::vector<HostProcess>& processes) {
  std::set<std::string> theirs, own;
  for (const HostProcess& process : processes) add_namespaces(process.pid, theirs);
  add_namespaces(getpid(), own);
  for (const std::string& name : own) theirs.erase(name);
  return theirs;
}

std::set<std::string> all_namespaces() {
  std::set<std::string> all;
  for (pid_t pid : all_pids()) add_namespaces(pid, all);
  return all;
}

double private_kib(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  double total = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("Private_Clean:") && !line.starts_with("Private_Dirty:")) continue;
    total += std::strtod(line.c_str() + line.find(':') + 1, nullptr);
  }
  return total;
}

}  // namespace atl::bench
