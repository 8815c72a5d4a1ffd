#include "os/cgroup_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "os/file.h"

namespace atl::os {
namespace {

constexpr uint64_t kUnlimitedV1 = uint64_t{1} << 62;
constexpr uint32_t kPeriodUs = 100'000;

uint64_t parse_number(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The number after "key " in a flat-keyed file.
uint64_t keyed_number(std::string_view text, std::string_view key) {
  size_t at = 0;
  while ((at = text.find(key, at)) != text.npos) {
    bool line_start = at == 0 || text[at - 1] == '\n';
    if (line_start && text.substr(at + key.size()).starts_with(' ')) {
      return parse_number(text.substr(at + key.size() + 1));
    }
    at += key.size();
  }
  return 0;
}

std::vector<std::string> subdirectories(int dir) {
  std::vector<std::string> names;
  UniqueFd copy(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy.valid()) return names;
  std::unique_ptr<DIR, int (*)(DIR*)> handle(fdopendir(copy.get()), closedir);
  if (handle == nullptr) return names;
  (void)copy.release();
  while (dirent* item = readdir(handle.get())) {
    if (item->d_type == DT_DIR && item->d_name[0] != '.') names.emplace_back(item->d_name);
  }
  return names;
}

// Groups below `group` are the agent's, one level deep by its own doing; deeper ones can only be a
// hostile agent's and go the same way.
bool remove_group(int parent, const char* group, int depth = 0) {
  UniqueFd dir(openat(parent, group, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return errno == ENOENT;
  if (depth < 32) {
    for (const std::string& child : subdirectories(dir.get())) {
      remove_group(dir.get(), child.c_str(), depth + 1);
    }
  }
  return unlinkat(parent, group, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

std::string file_of(const std::string& group, const char* name) { return group + "/" + name; }

}  // namespace

Result<CgroupTree::Hierarchy> CgroupTree::open_hierarchy(const std::string& mount,
                                                         const std::string& name) {
  Hierarchy hierarchy;
  ATOLL_ASSIGN(hierarchy.parent, open_dir_at(AT_FDCWD, mount.c_str()));
  ATOLL_TRY(make_dir_at(hierarchy.parent.get(), name.c_str(), 0755));
  ATOLL_ASSIGN(hierarchy.dir, open_dir_at(hierarchy.parent.get(), name.c_str()));
  return hierarchy;
}

Result<CgroupTree> CgroupTree::open(const CgroupLayout& layout, const std::string& name) {
  CgroupTree tree;
  tree.mode_ = layout.mode;
  tree.name_ = name;
  for (const CgroupMount& mount : layout.legacy) {
    ATOLL_ASSIGN(Hierarchy hierarchy, open_hierarchy(mount.path, name));
    hierarchy.controllers = mount.controllers;
    tree.legacy_.push_back(std::move(hierarchy));
  }
  if (!layout.unified.empty()) {
    ATOLL_ASSIGN(Hierarchy hierarchy, open_hierarchy(layout.unified, name));
    tree.unified_parent_ = std::move(hierarchy.parent);
    tree.unified_ = std::move(hierarchy.dir);
    if (layout.mode == CgroupMode::Unified) {
      // Controllers must be switched on in the parent of every group that has limits.
      for (const char* controller : {"+memory", "+pids", "+cpu"}) {
        (void)write_file_at(AT_FDCWD, (layout.unified + "/cgroup.subtree_control").c_str(),
                            controller);
        (void)write_file_at(tree.unified_.get(), "cgroup.subtree_control", controller);
      }
      tree.unified_limits_ = true;
    }
  }
  return tree;
}

const CgroupTree::Hierarchy* CgroupTree::legacy_for(std::string_view controller) const {
  for (const Hierarchy& hierarchy : legacy_) {
    const auto& list = hierarchy.controllers;
    if (std::find(list.begin(), list.end(), controller) != list.end()) return &hierarchy;
  }
  return nullptr;
}

Result<void> CgroupTree::create(const std::string& group, uid_t owner) {
  for (const Hierarchy& hierarchy : legacy_) {
    ATOLL_TRY(make_dir_at(hierarchy.dir.get(), group.c_str(), 0755));
  }
  if (!unified_.valid()) return {};
  ATOLL_TRY(make_dir_at(unified_.get(), group.c_str(), 0755));
  ATOLL_ASSIGN(UniqueFd dir, open_dir_at(unified_.get(), group.c_str()));
  // A hostile agent may fill its subtree with groups; bound what that costs.
  (void)write_file_at(dir.get(), "cgroup.max.descendants", "1024");
  (void)write_file_at(dir.get(), "cgroup.max.depth", "2");
  // Delegation as the kernel's documentation defines it: the directory and these files.
  if (fchown(dir.get(), owner, owner) != 0 ||
      fchownat(dir.get(), "cgroup.procs", owner, owner, 0) != 0 ||
      fchownat(dir.get(), "cgroup.threads", owner, owner, 0) != 0 ||
      fchownat(dir.get(), "cgroup.subtree_control", owner, owner, 0) != 0) {
    return fail_errno("chown", file_of(group, "cgroup.procs"));
  }
  return {};
}

Result<void> CgroupTree::join_legacy(const std::string& group) {
  for (const Hierarchy& hierarchy : legacy_) {
    ATOLL_TRY(write_file_at(hierarchy.dir.get(), file_of(group, "cgroup.procs").c_str(), "0"));
  }
  return {};
}

Result<void> CgroupTree::join_unified(const std::string& group) {
  if (!unified_.valid()) return fail(ErrorCode::NotSupported, "cgroup v2 is not mounted");
  return write_file_at(unified_.get(), file_of(group, "cgroup.procs").c_str(), "0");
}

Result<void> CgroupTree::write_legacy(std::string_view controller, const std::string& group,
                                      const char* file, const std::string& value) {
  const Hierarchy* hierarchy = legacy_for(controller);
  if (hierarchy == nullptr) return {};
  return write_file_at(hierarchy->dir.get(), file_of(group, file).c_str(), value);
}

Result<void> CgroupTree::set_limits(const std::string& group, const CgroupLimits& limits) {
  if (unified_limits_) {
    auto text = [](uint64_t value) {
      return value == 0 ? std::string("max") : std::to_string(value);
    };
    auto put = [&](const char* file, const std::string& value) {
      return write_file_at(unified_.get(), file_of(group, file).c_str(), value);
    };
    ATOLL_TRY(put("memory.max", text(limits.memory_bytes)));
    (void)put("memory.swap.max", "0");
    ATOLL_TRY(put("pids.max", text(limits.pids)));
    uint64_t quota = uint64_t{limits.cpu_millis} * kPeriodUs / 1000;
    return put("cpu.max", text(quota) + " " + std::to_string(kPeriodUs));
  }
  std::string memory =
      std::to_string(limits.memory_bytes == 0 ? kUnlimitedV1 : limits.memory_bytes);
  // Memory and memory+swap bound each other: which goes first depends on the direction.
  if (!write_legacy("memory", group, "memory.limit_in_bytes", memory)) {
    (void)write_legacy("memory", group, "memory.memsw.limit_in_bytes", memory);
    ATOLL_TRY(write_legacy("memory", group, "memory.limit_in_bytes", memory));
  }
  (void)write_legacy("memory", group, "memory.memsw.limit_in_bytes", memory);
  ATOLL_TRY(write_legacy("pids", group, "pids.max",
                         limits.pids == 0 ? "max" : std::to_string(limits.pids)));
  int64_t quota = limits.cpu_millis == 0 ? -1 : int64_t{limits.cpu_millis} * kPeriodUs / 1000;
  return write_legacy("cpu", group, "cpu.cfs_quota_us", std::to_string(quota));
}

Result<CgroupUsage> CgroupTree::usage(const std::string& group) {
  CgroupUsage usage;
  auto read_legacy = [&](std::string_view controller, const char* file) -> std::string {
    const Hierarchy* hierarchy = legacy_for(controller);
    if (hierarchy == nullptr) return {};
    return read_file_at(hierarchy->dir.get(), file_of(group, file).c_str()).value_or(std::string());
  };
  auto read_unified = [&](const char* file) {
    return read_file_at(unified_.get(), file_of(group, file).c_str()).value_or(std::string());
  };
  if (unified_limits_) {
    usage.memory_bytes = parse_number(read_unified("memory.current"));
    usage.memory_peak_bytes = parse_number(read_unified("memory.peak"));
    usage.cache_bytes = keyed_number(read_unified("memory.stat"), "file");
    usage.cpu_us = keyed_number(read_unified("cpu.stat"), "usage_usec");
    usage.pids = static_cast<uint32_t>(parse_number(read_unified("pids.current")));
    usage.oom_kills = keyed_number(read_unified("memory.events"), "oom_kill");
    return usage;
  }
  usage.memory_bytes = parse_number(read_legacy("memory", "memory.usage_in_bytes"));
  usage.memory_peak_bytes = parse_number(read_legacy("memory", "memory.max_usage_in_bytes"));
  usage.cache_bytes = keyed_number(read_legacy("memory", "memory.stat"), "total_cache");
  usage.cpu_us = parse_number(read_legacy("cpuacct", "cpuacct.usage")) / 1000;
  usage.pids = static_cast<uint32_t>(parse_number(read_legacy("pids", "pids.current")));
  usage.oom_kills = keyed_number(read_legacy("memory", "memory.oom_control"), "oom_kill");
  return usage;
}

Result<UniqueFd> CgroupTree::open_unified(const std::string& group) {
  if (!unified_.valid()) return UniqueFd();
  return open_dir_at(unified_.get(), group.c_str());
}

Result<void> CgroupTree::kill(const std::string& group) {
  if (!unified_.valid()) return fail(ErrorCode::NotSupported, "cgroup.kill needs cgroup v2");
  return write_file_at(unified_.get(), file_of(group, "cgroup.kill").c_str(), "1");
}

Result<void> CgroupTree::freeze(const std::string& group, bool frozen) {
  if (!unified_.valid()) return fail(ErrorCode::NotSupported, "cgroup.freeze needs cgroup v2");
  return write_file_at(unified_.get(), file_of(group, "cgroup.freeze").c_str(), frozen ? "1" : "0");
}

using FreezeDeadline = std::chrono::steady_clock::time_point;

static Result<void> await_frozen_at(int dir, const std::string& events_file, FreezeDeadline end) {
  UniqueFd events(openat(dir, events_file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!events.valid()) {
    // A command's group goes with its last process.
    return errno == ENOENT ? Result<void>() : fail_errno("open", events_file);
  }
  for (;;) {
    char text[256];
    ssize_t size = pread(events.get(), text, sizeof text, 0);
    if (size < 0 && errno == ENODEV) return {};
    if (size < 0) return fail_errno("read", events_file);
    if (std::string_view(text, static_cast<size_t>(size)).find("frozen 1") != std::string::npos) {
      return {};
    }
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return fail(ErrorCode::Timeout, "a process cannot be frozen");
    pollfd changed{events.get(), POLLPRI, 0};
    poll(&changed, 1, static_cast<int>(left.count()));
  }
}

// The kernel calls a group frozen once its own processes are, whatever those in groups below it do:
// it does not expect both in one group. So each of the groups below is asked, too.
Result<void> CgroupTree::await_frozen(const std::string& group, std::chrono::milliseconds limit) {
  FreezeDeadline end = std::chrono::steady_clock::now() + limit;
  ATOLL_TRY(await_frozen_at(unified_.get(), file_of(group, "cgroup.events"), end));
  ATOLL_ASSIGN(UniqueFd dir, open_dir_at(unified_.get(), group.c_str()));
  for (const std::string& below : subdirectories(dir.get())) {
    ATOLL_TRY(await_frozen_at(dir.get(), below + "/cgroup.events", end));
  }
  return {};
}

bool CgroupTree::remove(const std::string& group) {
  bool gone = true;
  for (const Hierarchy& hierarchy : legacy_) {
    gone &= remove_group(hierarchy.dir.get(), group.c_str());
  }
  if (unified_.valid()) gone &= remove_group(unified_.get(), group.c_str());
  return gone;
}

std::vector<std::string> CgroupTree::groups() {
  std::vector<std::string> all;
  for (const Hierarchy& hierarchy : legacy_) {
    auto names = subdirectories(hierarchy.dir.get());
    all.insert(all.end(), names.begin(), names.end());
  }
  if (unified_.valid()) {
    auto names = subdirectories(unified_.get());
    all.insert(all.end(), names.begin(), names.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

static std::vector<pid_t> read_processes(int dir, const std::string& group) {
  std::vector<pid_t> pids;
  std::string text =
      read_file_at(dir, file_of(group, "cgroup.procs").c_str()).value_or(std::string());
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    pids.push_back(static_cast<pid_t>(parse_number(std::string_view(text).substr(at, end - at))));
    if (end == text.npos) break;
    at = end + 1;
  }
  return pids;
}

std::vector<pid_t> CgroupTree::processes(const std::string& group) {
  const Hierarchy* legacy = legacy_for("pids");
  int dir = unified_.valid() ? unified_.get() : (legacy != nullptr ? legacy->dir.get() : -1);
  return read_processes(dir, group);
}

std::vector<CgroupTree::Subgroup> CgroupTree::subgroups(const std::string& group) {
  std::vector<Subgroup> found;
  auto dir = open_unified(group);
  if (!dir || !dir->valid()) return found;
  for (std::string& name : subdirectories(dir->get())) {
    auto pids = read_processes(dir->get(), name);
    found.push_back({std::move(name), std::move(pids)});
  }
  return found;
}

Result<void> CgroupTree::make_subgroup(const std::string& group, const std::string& name,
                                       uid_t owner) {
  ATOLL_ASSIGN(UniqueFd parent, open_unified(group));
  ATOLL_TRY(make_dir_at(parent.get(), name.c_str(), 0755));
  ATOLL_ASSIGN(UniqueFd dir, open_dir_at(parent.get(), name.c_str()));
  if (fchown(dir.get(), owner, owner) != 0) return fail_errno("chown", name);
  for (const char* file : {"cgroup.procs", "cgroup.threads", "cgroup.kill"}) {
    if (fchownat(dir.get(), file, owner, owner, 0) != 0 && errno != ENOENT) {
      return fail_errno("chown", file);
    }
  }
  return {};
}

Result<void> CgroupTree::move_process(const std::string& group, const std::string& subgroup,
                                      pid_t pid) {
  ATOLL_ASSIGN(UniqueFd parent, open_unified(group));
  return write_file_at(parent.get(), file_of(subgroup, "cgroup.procs").c_str(),
                       std::to_string(pid));
}

void CgroupTree::remove_tree() {
  // By descriptor: the launcher's mount namespace does not have the host's paths.
  for (const Hierarchy& hierarchy : legacy_) {
    unlinkat(hierarchy.parent.get(), name_.c_str(), AT_REMOVEDIR);
  }
  if (unified_.valid()) unlinkat(unified_parent_.get(), name_.c_str(), AT_REMOVEDIR);
}

}  // namespace atl::os
