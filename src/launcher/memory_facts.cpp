#include "launcher/memory_facts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>

#include "base/unique_fd.h"
#include "os/file.h"

namespace atl::launcher {
namespace {

std::string proc_path(pid_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
    text.remove_prefix(begin);
    size_t end = std::min(text.find_first_of(" \t"), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

template <class Take>
void each_line(std::string_view text, const Take& take) {
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

uint32_t number_in(std::string_view text) {
  uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

constexpr std::string_view kAsIs[] = {"CapInh:",
                                      "CapPrm:",
                                      "CapEff:",
                                      "CapBnd:",
                                      "CapAmb:",
                                      "NoNewPrivs:",
                                      "Seccomp:",
                                      "Seccomp_filters:",
                                      "Speculation_Store_Bypass:",
                                      "SpeculationIndirectBranch:"};
constexpr std::string_view kIds[] = {"Uid:", "Gid:", "Groups:"};

std::string confinement_in(const std::string& status, uint32_t id_base) {
  std::string facts;
  each_line(status, [&](std::string_view line) {
    auto words = words_of(line);
    if (words.empty()) return;
    bool is_id = std::find(std::begin(kIds), std::end(kIds), words[0]) != std::end(kIds);
    bool wanted = std::find(std::begin(kAsIs), std::end(kAsIs), words[0]) != std::end(kAsIs);
    if (!is_id && !wanted) return;
    for (size_t i = 0; i < words.size(); i++) {
      if (i > 0 && is_id) {
        facts += std::to_string(number_in(words[i]) - id_base);
      } else {
        facts += words[i];
      }
      facts += ' ';
    }
    facts += '\n';
  });
  return facts;
}

// The last number of the line, where there are several.
int32_t inner_in(const std::string& status) {
  int32_t pid = 0;
  each_line(status, [&](std::string_view line) {
    if (!line.starts_with("NSpid:")) return;
    auto words = words_of(line);
    if (words.size() > 2) pid = static_cast<int32_t>(number_in(words.back()));
  });
  return pid;
}

std::vector<std::string> threads_of(pid_t pid) {
  std::vector<std::string> names;
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(proc_path(pid, "task").c_str()), closedir);
  if (dir == nullptr) return names;
  while (dirent* item = readdir(dir.get())) {
    if (item->d_name[0] != '.') names.emplace_back(item->d_name);
  }
  return names;
}

}  // namespace

std::string kernel_release() {
  utsname name{};
  uname(&name);
  return std::string(name.release) + " " + name.machine;
}

std::string cpu_features() {
  std::string text = os::read_file_at(AT_FDCWD, "/proc/cpuinfo").value_or(std::string());
  std::string features;
  each_line(text, [&](std::string_view line) {
    bool names = line.starts_with("flags") || line.starts_with("Features");
    size_t colon = line.find(':');
    if (features.empty() && names && colon != line.npos) features = line.substr(colon + 1);
  });
  return features;
}

Result<std::vector<MountFacts>> read_mounts(pid_t pid) {
  ATOLL_ASSIGN(std::string text, os::read_file_at(AT_FDCWD, proc_path(pid, "mountinfo").c_str()));
  std::vector<MountFacts> mounts;
  // ID PARENT DEVICE ROOT PLACE OPTIONS [TAGS...] - TYPE SOURCE SUPER-OPTIONS
  each_line(text, [&](std::string_view line) {
    auto words = words_of(line);
    auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || dash == words.end() || dash + 1 == words.end()) return;
    mounts.push_back({.place = std::string(words[4]),
                      .root = std::string(words[3]),
                      .type = std::string(dash[1]),
                      .options = std::string(words[5])});
  });
  return mounts;
}

int32_t inner_pid(pid_t pid) {
  return inner_in(os::read_file_at(AT_FDCWD, proc_path(pid, "status").c_str()).value_or(""));
}

Result<std::vector<TaskFacts>> read_tasks(const std::vector<pid_t>& processes, uint32_t id_base) {
  std::vector<TaskFacts> tasks;
  for (pid_t pid : processes) {
    for (const std::string& thread : threads_of(pid)) {
      std::string path = proc_path(pid, "task/") + thread + "/status";
      auto status = os::read_file_at(AT_FDCWD, path.c_str());
      if (!status) continue;  // it has just ended
      int32_t inner = inner_in(*status);
      if (inner == 0 || status->find("State:\tZ") != status->npos) continue;
      tasks.push_back({inner, confinement_in(*status, id_base)});
    }
  }
  std::sort(tasks.begin(), tasks.end(),
            [](const TaskFacts& a, const TaskFacts& b) { return a.pid < b.pid; });
  return tasks;
}

std::vector<pid_t> all_processes(os::CgroupTree& cgroups, const std::string& slot) {
  std::vector<pid_t> all = cgroups.processes(slot);
  for (const auto& group : cgroups.subgroups(slot)) {
    all.insert(all.end(), group.processes.begin(), group.processes.end());
  }
  return all;
}

Result<void> check_host(const Manifest& manifest, const std::string& agent) {
  auto refuse = [](const std::string& what) {
    return fail(ErrorCode::NotSupported,
                "these processes cannot run here: " + what +
                    "; its files are unharmed: create a sandbox from them, or start it anew");
  };
  if (manifest.version != 1) return refuse("they were kept by another version of Atoll");
  if (manifest.kernel != kernel_release()) {
    return refuse("they were kept on kernel " + manifest.kernel + ", and this is " +
                  kernel_release());
  }
  std::string here = cpu_features();
  auto list = words_of(here);
  std::set<std::string_view> features(list.begin(), list.end());
  for (std::string_view wanted : words_of(manifest.cpu)) {
    if (!features.contains(wanted)) {
      return refuse("they were kept on a processor with " + std::string(wanted));
    }
  }
  if (manifest.agent != agent) return refuse("they were kept by another version of Atoll");
  return {};
}

namespace {

Result<std::string> namespace_of(pid_t pid, const char* kind) {
  char text[64];
  std::string path = pid == 0 ? std::string("/proc/self/ns/") + kind : proc_path(pid, "ns/") + kind;
  ssize_t size = readlink(path.c_str(), text, sizeof text);
  if (size < 0) return fail_errno("readlink", path);
  return std::string(text, static_cast<size_t>(size));
}

Error loose(const std::string& what) {
  return Error(ErrorCode::Internal, "the revived processes are not confined as they were: " + what);
}

// All in one set of namespaces: its own, except for the two that the caller has made for it.
Result<void> check_namespaces(const RevivedPlace& revived, const std::vector<pid_t>& processes) {
  for (const char* kind : {"user", "mnt", "pid", "ipc", "uts", "time", "net", "cgroup"}) {
    ATOLL_ASSIGN(std::string own, namespace_of(revived.pid, kind));
    ATOLL_ASSIGN(std::string ours, namespace_of(0, kind));
    bool given = std::string_view(kind) == "net" || std::string_view(kind) == "cgroup";
    if ((own == ours) != given) return fail(loose(std::string("its ") + kind + " namespace"));
    for (pid_t pid : processes) {
      ATOLL_ASSIGN(std::string other, namespace_of(pid, kind));
      if (other != own) return fail(loose(std::string("another ") + kind + " namespace inside"));
    }
  }
  for (const char* map : {"uid_map", "gid_map"}) {
    ATOLL_ASSIGN(std::string text, os::read_file_at(AT_FDCWD, proc_path(revived.pid, map).c_str()));
    auto words = words_of(std::string_view(text).substr(0, text.find_last_not_of('\n') + 1));
    if (words.size() != 3 || words[0] != "0" || number_in(words[1]) != revived.id_base ||
        words[2] != "65536") {
      return fail(loose(map));
    }
  }
  return {};
}

// The caller stands at the root of their control groups.
Result<void> check_groups(const std::vector<pid_t>& processes) {
  for (pid_t pid : processes) {
    ATOLL_ASSIGN(std::string text, os::read_file_at(AT_FDCWD, proc_path(pid, "cgroup").c_str()));
    if (text.find("/..") != text.npos) return fail(loose("its control groups"));
  }
  return {};
}

std::set<std::string> told(const std::vector<MountFacts>& mounts) {
  std::set<std::string> lines;
  for (const MountFacts& mount : mounts) {
    // Where the agent comes from and what covers /proc is the launcher's, under whatever name.
    lines.insert(mount.place + " " + mount.type + " " + mount.options);
  }
  return lines;
}

}  // namespace

Result<void> check_isolation(const Manifest& manifest, const RevivedPlace& revived,
                             const std::vector<pid_t>& processes) {
  ATOLL_TRY(check_namespaces(revived, processes));
  ATOLL_TRY(check_groups(processes));
  ATOLL_ASSIGN(auto tasks, read_tasks(processes, revived.id_base));
  if (tasks != manifest.tasks) {
    for (size_t i = 0; i < std::min(tasks.size(), manifest.tasks.size()); i++) {
      if (tasks[i] == manifest.tasks[i]) continue;
      return fail(loose("process " + std::to_string(tasks[i].pid) + ": " + tasks[i].confinement +
                        "instead of " + manifest.tasks[i].confinement));
    }
    return fail(loose(std::to_string(tasks.size()) + " threads instead of " +
                      std::to_string(manifest.tasks.size())));
  }
  ATOLL_ASSIGN(auto mounts, read_mounts(revived.pid));
  auto now = told(mounts), then = told(manifest.mounts);
  if (now == then) return {};
  std::string difference;
  for (const std::string& line : then) {
    if (!now.contains(line)) difference += " without " + line + ";";
  }
  for (const std::string& line : now) {
    if (!then.contains(line)) difference += " with " + line + ";";
  }
  return fail(loose("its mounts are" + difference));
}

}  // namespace atl::launcher
