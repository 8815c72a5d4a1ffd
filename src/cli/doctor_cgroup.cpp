#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scope_exit.h"
#include "cli/doctor.h"
#include "os/cgroup_host.h"
#include "os/raw_clone.h"

namespace atl::cli {
namespace {

constexpr const char* kUnifiedRemedy =
    "mount cgroup2 (mount -t cgroup2 none /sys/fs/cgroup/unified), or boot with "
    "systemd.unified_cgroup_hierarchy=1";

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

Check check_controllers(const os::CgroupLayout& layout) {
  if (layout.missing.empty()) return check_ok("cgroup controllers", "memory, pids, cpu");
  return degraded("cgroup controllers",
                  fmt::format("no {}: such limits cannot be set and usage is not known",
                              joined(layout.missing)),
                  "boot with cgroup_enable=memory, or take them off cgroup_disable=");
}

void end_child(void*) {
  for (;;) syscall(SYS_exit_group, 0);
}

// Tries clone3 straight into the group, as every sandbox and command is started.
int clone_into(int group) {
  alignas(16) static char stack[16384];
  clone_args args{};
  args.flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.stack = os::pointer_value(stack);
  args.stack_size = sizeof stack;
  args.cgroup = static_cast<uint64_t>(group);
  long child = os::clone3_call(args, end_child, nullptr);
  if (child < 0) return static_cast<int>(-child);
  waitpid(static_cast<pid_t>(child), nullptr, 0);
  return 0;
}

std::vector<Check> check_group(const std::string& unified) {
  std::string path = fmt::format("{}/atoll-doctor-{}", unified, getpid());
  if (mkdir(path.c_str(), 0755) != 0) {
    std::string detail = fmt::format("cannot make a group in {}: {}", unified, strerror(errno));
    if (errno == EACCES || errno == EPERM) {
      return {degraded("cgroup tree", detail, "sudo atoll doctor")};
    }
    return {missing("cgroup tree", detail, "remount it writable: mount -o remount,rw " + unified)};
  }
  ScopeExit remove([&] { rmdir(path.c_str()); });
  std::vector<Check> checks = {check_ok("cgroup tree", "writable")};
  for (const char* file : {"cgroup.kill", "cgroup.freeze"}) {
    bool there = access((path + "/" + file).c_str(), W_OK) == 0;
    checks.push_back(there ? check_ok(file, "works")
                           : missing(file, "not offered", "boot Linux 5.19 or newer"));
  }
  UniqueFd group(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int error = clone_into(group.get());
  checks.push_back(error == 0 ? check_ok("clone3 into cgroup", "works")
                              : missing("clone3 into cgroup", strerror(error),
                                        "boot Linux 5.19 or newer, outside containers that "
                                        "forbid clone3"));
  return checks;
}

}  // namespace

std::vector<Check> cgroup_checks() {
  auto layout = os::detect_cgroups();
  if (!layout) return {missing("cgroups", layout.error().message(), "mount /proc")};
  if (layout->unified.empty()) {
    return {missing("cgroups", "no cgroup v2 tree: sandboxes cannot be ended or frozen as a whole",
                    kUnifiedRemedy)};
  }
  std::vector<Check> checks = {
      check_ok("cgroups", fmt::format("{} at {}", os::to_string(layout->mode), layout->unified))};
  checks.push_back(check_controllers(*layout));
  for (Check& check : check_group(layout->unified)) checks.push_back(std::move(check));
  return checks;
}

}  // namespace atl::cli
