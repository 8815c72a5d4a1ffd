#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "os/gate.h"
#include "os/syscalls.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

namespace atl::cli {
namespace {

constexpr int kMajor = 5;
constexpr int kMinor = 19;

// Runs `attempt` in a process of its own, as its effects cannot be undone; returns errno or 0.
template <class Attempt>
int try_in_child(const Attempt& attempt) {
  // Not fork(): a sanitizer gives its child a second thread, and a process with threads gets no
  // user namespace.
  clone_args args{};
  args.exit_signal = SIGCHLD;
  auto child = static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
  if (child < 0) return errno;
  if (child == 0) _exit(attempt() == 0 ? 0 : errno);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

Check check_root() {
  if (geteuid() == 0) return check_ok("root", "yes");
  return degraded("root",
                  "not root: what needs root could not be tried, and 'atoll serve' needs it",
                  "sudo atoll doctor");
}

Check check_kernel() {
  utsname names{};
  uname(&names);
  if (kernel_at_least(names.release, kMajor, kMinor)) return check_ok("kernel", names.release);
  return missing("kernel", fmt::format("{} is older than {}.{}", names.release, kMajor, kMinor),
                 "boot a newer kernel; Debian 12 has 6.1");
}

struct Namespace {
  const char* name;
  const char* file;
  int flag;
};

Check check_namespace(const Namespace& kind) {
  std::string name = fmt::format("{} namespace", kind.name);
  std::string path = fmt::format("/proc/self/ns/{}", kind.file);
  if (access(path.c_str(), F_OK) != 0) {
    return missing(name, "this kernel has none", "use a kernel with all CONFIG_*_NS options");
  }
  // Without root only a user namespace can be had, and with it the others.
  int flags = geteuid() == 0 ? kind.flag : kind.flag | CLONE_NEWUSER;
  int error = try_in_child([&] { return unshare(flags); });
  utsname names{};
  uname(&names);
  // There a program that is executed stays in the namespace that it was started from.
  bool unused = kind.flag == CLONE_NEWTIME && !kernel_at_least(names.release, 6, 2);
  if (error == 0 && unused) {
    return degraded(name,
                    "not used before kernel 6.2: sandboxes can tell how long this host has run",
                    "boot a newer kernel");
  }
  if (error == 0) return check_ok(name, "works");
  std::string remedy = kind.flag == CLONE_NEWUSER
                           ? "sysctl user.max_user_namespaces=65536 "
                             "kernel.unprivileged_userns_clone=1"
                           : fmt::format("sysctl user.max_{}_namespaces=65536", kind.file);
  std::string detail = fmt::format("unshare: {}", strerror(error));
  return geteuid() == 0 ? missing(name, detail, remedy)
                        : degraded(name, detail, "sudo atoll doctor");
}

Check check_overlay() {
  if (os::fsopen("overlay").valid()) return check_ok("overlayfs", "works");
  if (errno == EPERM) {
    return degraded("overlayfs", "could not be tried without root", "sudo atoll doctor");
  }
  return missing("overlayfs", strerror(errno), "modprobe overlay");
}

Check check_mount_api() {
  UniqueFd context = os::fsopen("tmpfs");
  if (context.valid()) {
    bool made = os::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0;
    if (made && os::fsmount(context.get(), 0).valid()) return check_ok("mount API", "works");
  }
  if (errno == EPERM) {
    return degraded("mount API", "could not be tried without root", "sudo atoll doctor");
  }
  return missing("mount API", fmt::format("fsopen: {}", strerror(errno)),
                 "boot Linux 5.19 or newer, outside containers that forbid fsopen");
}

Check check_seccomp() {
  uint32_t action = SECCOMP_RET_ERRNO;
  if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0) {
    return check_ok("seccomp", "filters work");
  }
  return missing("seccomp", strerror(errno), "use a kernel with CONFIG_SECCOMP_FILTER=y");
}

Check check_pidfd() {
  UniqueFd fd = os::pidfd_open(getpid());
  if (fd.valid() && os::pidfd_send_signal(fd.get(), 0) == 0) return check_ok("pidfd", "works");
  return missing("pidfd", strerror(errno), "boot Linux 5.19 or newer");
}

Check check_openat2() {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  if (os::openat2(AT_FDCWD, ".", how).valid()) return check_ok("openat2", "works");
  return missing("openat2", strerror(errno),
                 "boot Linux 5.19 or newer, outside containers that forbid openat2");
}

Check check_capability() {
  // The effective set is what counts; the last field of its line is the mask.
  FILE* status = fopen("/proc/self/status", "re");
  unsigned long long mask = 0;
  char line[256];
  while (status != nullptr && fgets(line, sizeof line, status) != nullptr) {
    if (sscanf(line, "CapEff: %llx", &mask) == 1) break;
  }
  if (status != nullptr) fclose(status);
  if (mask >> CAP_SYS_RESOURCE & 1) return check_ok("CAP_SYS_RESOURCE", "held");
  return degraded("CAP_SYS_RESOURCE",
                  "not held: limits above the hard ones of this session cannot be set",
                  geteuid() == 0 ? "add it to the service or container" : "sudo atoll doctor");
}

// In a namespace of its own, which goes with the process.
int try_gate(os::Steering steering) {
  return try_in_child([&] {
    UniqueFd home(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    auto gate = os::open_spare_gate(home.get(), steering);
    if (gate) return 0;
    errno = gate.error().sys_errno();
    return -1;
  });
}

Check check_gate() {
  constexpr const char* kName = "network gate";
  if (geteuid() != 0) {
    return degraded(kName, "could not be tried without root", "sudo atoll doctor");
  }
  int refused = try_gate(os::Steering::Program);
  if (refused == 0) return check_ok(kName, "by a BPF program");
  std::string detail = fmt::format("bpf sk_lookup: {}", strerror(refused));
  if (try_gate(os::Steering::Redirection) == 0) {
    return degraded(kName, detail + "; connections are redirected by nf_tables, which is slower",
                    "use a kernel with CONFIG_BPF_SYSCALL, 5.9 or newer");
  }
  return missing(kName, detail + ", and nf_tables cannot redirect: sandboxes have no network",
                 "modprobe nft_redir nf_conntrack, or a kernel with CONFIG_BPF_SYSCALL");
}

}  // namespace

bool kernel_at_least(const std::string& release, int major, int minor) {
  int found_major = 0;
  int found_minor = 0;
  if (sscanf(release.c_str(), "%d.%d", &found_major, &found_minor) != 2) return false;
  return found_major > major || (found_major == major && found_minor >= minor);
}

std::vector<Check> kernel_checks() {
  static constexpr Namespace kNamespaces[] = {
      {"user", "user", CLONE_NEWUSER},       {"mount", "mnt", CLONE_NEWNS},
      {"pid", "pid", CLONE_NEWPID},          {"network", "net", CLONE_NEWNET},
      {"ipc", "ipc", CLONE_NEWIPC},          {"uts", "uts", CLONE_NEWUTS},
      {"cgroup", "cgroup", CLONE_NEWCGROUP}, {"time", "time", CLONE_NEWTIME}};
  std::vector<Check> checks = {check_root(), check_kernel()};
  for (const Namespace& kind : kNamespaces) checks.push_back(check_namespace(kind));
  checks.push_back(check_overlay());
  checks.push_back(check_mount_api());
  checks.push_back(check_seccomp());
  checks.push_back(check_pidfd());
  checks.push_back(check_openat2());
  checks.push_back(check_capability());
  checks.push_back(check_gate());
  return checks;
}

}  // namespace atl::cli
