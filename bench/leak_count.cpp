#include "leak_count.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "child.h"
#include "host_cgroups.h"
#include "host_processes.h"
#include "stats.h"
#include "storage/state_pool.h"

namespace atl::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kSettleSeconds = 30;

std::vector<std::string> mount_lines() {
  std::ifstream file("/proc/self/mountinfo");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void add_entries(const std::string& dir, std::set<std::string>& into) {
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    into.insert(it->path().filename());
  }
}

void add_pool_entries(const Workspace& workspace, std::set<std::string>& into) {
  auto pool = storage::StatePool::find(workspace.data_dir());
  if (!pool || !*pool) return;
  for (int dir : {(*pool)->sandboxes(), (*pool)->states(), (*pool)->trash()}) {
    add_entries("/proc/self/fd/" + std::to_string(dir), into);
  }
}

size_t excess(size_t now, size_t before) { return now > before ? now - before : 0; }

LeakCount difference(LeakCount now, const LeakCount& before) {
  now.mounts = excess(now.mounts, before.mounts);
  now.cgroups = excess(now.cgroups, before.cgroups);
  now.namespaces = excess(now.namespaces, before.namespaces);
  now.processes = excess(now.processes, before.processes);
  for (const std::string& name : before.files) now.files.erase(name);
  return now;
}

}  // namespace

LeakCount count_leaks(const Workspace& workspace) {
  LeakCount count;
  for (const std::string& line : mount_lines()) {
    for (const std::string& dir : {workspace.data_dir(), workspace.dir()}) {
      if (line.find(dir + "/") == line.npos) continue;
      count.mounts++;
      break;
    }
  }
  count.cgroups = count_cgroups(workspace.cgroup());
  std::vector<HostProcess> processes = our_processes(workspace.cgroup());
  count.processes = processes.size();
  count.namespaces = namespaces_of(processes).size();
  add_pool_entries(workspace, count.files);
  add_entries(workspace.run_dir() + "/agents", count.files);
  add_entries(workspace.run_dir() + "/launcher", count.files);
  return count;
}

LeakCount settle_leaks(const Workspace& workspace, const LeakCount& before) {
  Stopwatch watch;
  for (;;) {
    reap_orphans({});
    LeakCount left = difference(count_leaks(workspace), before);
    if (left.total() == 0 || watch.seconds() > kSettleSeconds) return left;
    usleep(100'000);
  }
}

void report_leaks(const LeakCount& left, Report& report) {
  report.set("leaks", static_cast<double>(left.total()));
  report.set("leak_mounts", static_cast<double>(left.mounts));
  report.set("leak_cgroups", static_cast<double>(left.cgroups));
  report.set("leak_namespaces", static_cast<double>(left.namespaces));
  report.set("leak_processes", static_cast<double>(left.processes));
  report.set("leak_files", static_cast<double>(left.files.size()));
  if (!left.files.empty()) report.note("leaks: a file left is " + *left.files.begin());
}

size_t wait_for_sweeper(const Workspace& workspace) {
  Stopwatch watch;
  for (;;) {
    std::set<std::string> left;
    auto pool = storage::StatePool::find(workspace.data_dir());
    if (pool && *pool) add_entries("/proc/self/fd/" + std::to_string((*pool)->trash()), left);
    if (left.empty() || watch.seconds() > kSettleSeconds) return left.size();
    usleep(50'000);
  }
}

HostTotals host_totals() { return {mount_lines().size(), all_namespaces().size()}; }

}  // namespace atl::bench
