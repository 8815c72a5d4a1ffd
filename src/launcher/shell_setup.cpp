#include "launcher/shell_setup.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>

#include "launcher/mount_table.h"
#include "os/file.h"
#include "os/raw_identity.h"
#include "os/syscalls.h"

namespace atl::launcher {
namespace {

// What Docker hides or write-protects in /proc, and a few more. Each costs about 1.5 KiB of kernel
// memory a sandbox; files that only the host's root may open need no cover, as nobody inside is
// that.
constexpr const char* kMasked[] = {
    "acpi",          "asound",     "bus",           "fs",       "interrupts",  "irq",       "kcore",
    "key-users",     "keys",       "latency_stats", "pressure", "sched_debug", "schedstat", "scsi",
    "sysrq-trigger", "timer_list",
};
constexpr const char* kReadOnly[] = {"sys"};

// The `dev` profile's capabilities, plus the one a command uses to give up the rest.
constexpr int kKept[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
                         CAP_KILL,  CAP_SETGID,       CAP_SETUID, CAP_SETPCAP};

Result<void> attach(UniqueFd tree, const char* to) {
  if (os::move_mount(tree.get(), "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return fail_errno("move_mount", to);
  }
  return {};
}

Result<UniqueFd> read_only_clone(const char* path, uint64_t extra) {
  UniqueFd tree = os::open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (!tree.valid()) return fail_errno("open_tree", path);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | extra;
  if (os::mount_setattr(tree.get(), "", AT_EMPTY_PATH, attributes) != 0) {
    return fail_errno("mount_setattr", path);
  }
  return tree;
}

Result<void> mask_proc() {
  for (const char* name : kMasked) {
    std::string path = std::string(kStageProc) + "/" + name;
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0) continue;  // this kernel does not have it
    bool is_dir = S_ISDIR(info.st_mode);
    ATOLL_ASSIGN(UniqueFd cover, read_only_clone(is_dir ? kEmptyDir : kNull, MOUNT_ATTR_NOEXEC));
    ATOLL_TRY(attach(std::move(cover), path.c_str()));
  }
  for (const char* name : kReadOnly) {
    std::string path = std::string(kStageProc) + "/" + name;
    ATOLL_ASSIGN(UniqueFd same,
                 read_only_clone(path.c_str(), MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
    ATOLL_TRY(attach(std::move(same), path.c_str()));
  }
  return {};
}

// No namespace of any kind can be made inside once these hold 0, whatever a system call filter
// says. Opened while /proc/sys is still writable, written when the last mount is made: cloning a
// mount counts as making a mount namespace.
class NamespaceCounts {
 public:
  Result<void> open() {
    for (const char* kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"}) {
      std::string path = std::string(kStageProc) + "/sys/user/max_" + kind + "_namespaces";
      files_.emplace_back(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      if (!files_.back().valid()) return fail_errno("open", path);
    }
    return {};
  }
  Result<void> forbid() {
    for (const UniqueFd& file : files_) {
      if (write(file.get(), "0", 1) != 1) return fail_errno("write", "namespace limit");
    }
    return {};
  }

 private:
  std::vector<UniqueFd> files_;
};

// Before 6.2 a process stayed in its time namespace when it executed another program, and could not
// start a child in the new one that shares its memory, as the agent starts commands.
bool has_time_namespaces() {
  utsname names{};
  uname(&names);
  int major = 0, minor = 0;
  return sscanf(names.release, "%d.%d", &major, &minor) != 2 || major > 6 ||
         (major == 6 && minor >= 2);
}

// Clocks that count from boot start at zero: a sandbox is not told how long the host has run.
Result<void> enter_time_namespace() {
  if (!has_time_namespaces()) return {};
  if (unshare(CLONE_NEWTIME) != 0) return fail_errno("unshare", "time namespace");
  timespec monotonic{}, boot{};
  clock_gettime(CLOCK_MONOTONIC, &monotonic);
  clock_gettime(CLOCK_BOOTTIME, &boot);
  std::string offsets = "monotonic -" + std::to_string(monotonic.tv_sec) + " 0\nboottime -" +
                        std::to_string(boot.tv_sec) + " 0\n";
  std::string path = std::string(kStageProc) + "/self/timens_offsets";
  return os::write_file_at(AT_FDCWD, path.c_str(), offsets);
}

Result<void> stage_mounts() {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return fail_errno("mount", "/");
  constexpr unsigned long kPlain = MS_NOSUID | MS_NOEXEC;
  if (mount("proc", kStageProc, "proc", kPlain | MS_NODEV, nullptr) != 0)
    return fail_errno("mount", "proc");
  if (mount("devpts", kStagePts, "devpts", kPlain, "newinstance,ptmxmode=0666,mode=0620,gid=5") !=
      0) {
    return fail_errno("mount", "devpts");
  }
  if (mount("shm", kStageShm, "tmpfs", kPlain | MS_NODEV, "mode=1777,size=64m,nr_inodes=16k") !=
      0) {
    return fail_errno("mount", "shm");
  }
  ATOLL_ASSIGN(UniqueFd agent, read_only_clone(kAgent, MOUNT_ATTR_NODEV));
  ATOLL_TRY(attach(std::move(agent), kStageAgent));
  ATOLL_TRY(enter_time_namespace());
  NamespaceCounts counts;
  ATOLL_TRY(counts.open());
  ATOLL_TRY(mask_proc());
  return counts.forbid();
}

void set_limit(int resource, rlim_t value) {
  rlimit limit{};
  getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  limit.rlim_max = std::min(limit.rlim_max, value);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

void set_process_limits() {
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_NOFILE, 65536);
  set_limit(RLIMIT_MEMLOCK, 8u << 20);
}

Result<void> take_identity() {
  // The maps exist by now.
  if (!os::become_namespace_root()) return fail_errno("become root of the sandbox");
  // A change of user makes a process undumpable, and its own /proc files the host root's. The agent
  // undoes this as its first act.
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  return {};
}

Result<void> place_descriptors(const ShellChild& child) {
  // Copies above the range they move into, so that no move overwrites a source.
  int null = fcntl(open(kNull, O_RDWR), F_DUPFD, 64);
  int listener = fcntl(child.listener, F_DUPFD, 64);
  int cgroup = child.cgroup_dir >= 0 ? fcntl(child.cgroup_dir, F_DUPFD, 64) : -1;
  int report = fcntl(child.report_fd, F_DUPFD_CLOEXEC, 64);
  if (null < 0 || listener < 0 || report < 0) return fail_errno("dup");
  for (int fd : {0, 1, 2}) dup2(null, fd);
  dup2(listener, 3);
  if (cgroup >= 0)
    dup2(cgroup, 4);
  else
    close(4);
  dup3(report, 5, O_CLOEXEC);
  if (syscall(SYS_close_range, 6, ~0u, 0) != 0) return fail_errno("close_range");
  return {};
}

Result<void> drop_capabilities() {
  for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
    if (std::find(std::begin(kKept), std::end(kKept), cap) != std::end(kKept)) continue;
    if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0 && errno != EINVAL)
      return fail_errno("drop capability");
  }
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  for (int cap : kKept) {
    data[cap / 32].permitted |= 1u << (cap % 32);
    data[cap / 32].effective |= 1u << (cap % 32);
  }
  if (syscall(SYS_capset, &header, data) != 0) return fail_errno("capset");
  return {};
}

Result<void> confine(const ShellPlan& plan) {
  // A keyring of its own, or it would share the one this daemon was started with.
  syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_FORCE_DISABLE, 0, 0);
  prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_INDIRECT_BRANCH, PR_SPEC_FORCE_DISABLE, 0, 0);
  ATOLL_TRY(drop_capabilities());
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno("no_new_privs");
  sock_fprog program{.len = static_cast<unsigned short>(plan.filter->size()),
                     .filter = const_cast<sock_filter*>(plan.filter->data())};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) return fail_errno("seccomp");
  return {};
}

// An ignored signal stays ignored across exec: commands in the sandbox must not inherit what the
// terminal or script that started the daemon had ignored.
void default_signals() {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
}

Result<void> set_up(const ShellChild& child) {
  // Or it would wait for itself where the builder is killed.
  close(child.go_write_fd);
  char go = 0;
  if (read(child.go_fd, &go, 1) != 1) return fail(ErrorCode::Cancelled, "the builder went away");
  umask(022);
  default_signals();
  ATOLL_TRY(take_identity());
  setsid();
  ATOLL_TRY(stage_mounts());
  ATOLL_TRY(place_descriptors(child));
  set_process_limits();
  if (chdir("/") != 0) return fail_errno("chdir", "/");
  return confine(*child.plan);
}

}  // namespace

void become_agent(const ShellChild& child) {
  int report = child.report_fd;
  Result<void> ready = set_up(child);
  Error error(ErrorCode::Internal, "");
  if (ready) {
    char name[] = "atoll-agent";
    char* argv[] = {name, nullptr};
    char* envp[] = {nullptr};
    execve(kStageAgent, argv, envp);
    error = Error::from_errno(errno, "exec", "the agent");
  } else {
    error = std::move(ready).error();
  }
  // After place_descriptors the report pipe is descriptor 5.
  for (int fd : {report, 5}) {
    if (write(fd, error.message().data(), error.message().size()) > 0) break;
  }
  _exit(1);
}

}  // namespace atl::launcher
