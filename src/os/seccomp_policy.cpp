#include "os/seccomp_policy.h"

#include <linux/futex.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <span>
#include <utility>

namespace atl {
namespace {

// The allowed calls are those that both Docker's and Podman's default profiles allow to a process
// without capabilities, minus ptrace, process_vm_*, modify_ldt, remap_file_pages, memfd_secret and
// name_to_handle_at (kernel surface that ordinary programs do not need), plus a few newer calls
// that current runtimes use.
// mknod and mknodat make FIFOs; device nodes the kernel refuses by itself, for want of CAP_MKNOD in
// the initial user namespace.
constexpr std::string_view kFiles = R"(
  access chdir chmod chown close close_range creat dup dup2 dup3 faccessat faccessat2 fadvise64
  fallocate fchdir fchmod fchmodat fchown fchownat fcntl fdatasync fgetxattr flistxattr flock
  fremovexattr fsetxattr fstat fstatfs fsync ftruncate futimesat getcwd getdents getdents64
  getxattr lchown lgetxattr link linkat listxattr llistxattr lremovexattr lseek lsetxattr lstat
  mkdir mkdirat newfstatat open openat openat2 readlink readlinkat removexattr rename renameat
  renameat2 rmdir setxattr stat statfs statx symlink symlinkat sync syncfs truncate umask unlink
  unlinkat utime utimensat utimes fanotify_mark inotify_add_watch inotify_init inotify_init1
  inotify_rm_watch sync_file_range mknod mknodat
)";

constexpr std::string_view kInputOutput = R"(
  copy_file_range epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2
  epoll_wait epoll_wait_old eventfd eventfd2 io_cancel io_destroy io_getevents io_setup io_submit
  pipe pipe2 poll ppoll pread64 preadv preadv2 pselect6 pwrite64 pwritev pwritev2 read readahead
  readv select sendfile splice tee write writev
)";

// socket, socketpair and setsockopt are filtered below.
constexpr std::string_view kNetwork = R"(
  accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg
  sendmmsg sendmsg sendto shutdown
)";

constexpr std::string_view kMemory = R"(
  brk madvise membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect mremap msync
  munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect
)";

// clone3 is allowed here because the agent spawns with it; os::kExecFilter takes it away from all
// that the agent starts. capset, set*id, prctl and seccomp only give rights up.
constexpr std::string_view kProcesses = R"(
  arch_prctl capget capset clone3 execve execveat exit exit_group fork get_robust_list
  get_thread_area getegid geteuid getgid getgroups getpgid getpgrp getpid getppid getresgid
  getresuid getrlimit getrusage getsid gettid getuid landlock_add_rule landlock_create_ruleset
  landlock_restrict_self pidfd_open pidfd_send_signal prlimit64 process_mrelease rseq seccomp
  set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setpgid
  setregid setresgid setresuid setreuid setrlimit setsid setuid vfork wait4 waitid
)";

constexpr std::string_view kSignals = R"(
  kill pause restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
  rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sigaltstack signalfd signalfd4
  tgkill tkill
)";

constexpr std::string_view kInterprocess = R"(
  mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv
  msgsnd semctl semget semop semtimedop shmat shmctl shmdt shmget
)";

// adjtimex and clock_adjtime read the clock's state; setting it needs CAP_SYS_TIME of the host.
constexpr std::string_view kTimeAndScheduling = R"(
  adjtimex alarm clock_adjtime clock_getres clock_gettime clock_nanosleep futex_waitv getcpu
  getitimer getpriority getrandom gettimeofday ioprio_get ioprio_set nanosleep
  sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
  sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
  sched_setscheduler sched_yield setitimer setpriority sysinfo time timer_create timer_delete
  timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime
  times uname
)";

// Calls from 424 on have the same number on every architecture. The futex calls have no priority
// inheritance variant, which is what the filter of futex(2) keeps out.
constexpr SyscallName kNewCalls[] = {
    {"cachestat", 451},   {"fchmodat2", 452},     {"map_shadow_stack", 453},
    {"futex_wake", 454},  {"futex_wait", 455},    {"futex_requeue", 456},
    {"mseal", 462},       {"setxattrat", 463},    {"getxattrat", 464},
    {"listxattrat", 465}, {"removexattrat", 466},
};

// Refused with EPERM rather than ENOSYS, so that a person who meets the refusal sees that it is
// one.
constexpr std::string_view kMountsAndNamespaces = R"(
  mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr
  setns unshare
)";
constexpr std::string_view kOtherProcesses = R"(
  ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp
)";
// Subsystems with a history of privilege escalations, and ways around path lookup.
constexpr std::string_view kKernelSurface = R"(
  bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register add_key
  request_key keyctl fanotify_init vmsplice memfd_secret modify_ldt remap_file_pages io_pgetevents
  open_by_handle_at name_to_handle_at lookup_dcookie
)";
constexpr std::string_view kNumaPolicy = R"(
  mbind set_mempolicy get_mempolicy migrate_pages move_pages set_mempolicy_home_node
)";
constexpr std::string_view kHost = R"(
  reboot kexec_load kexec_file_load init_module finit_module delete_module swapon swapoff acct
  quotactl quotactl_fd syslog iopl ioperm clock_settime settimeofday sethostname setdomainname
  vhangup
)";
// Most are empty slots in current kernels.
constexpr std::string_view kObsolete = R"(
  uselib ustat sysfs _sysctl create_module get_kernel_syms query_module nfsservctl getpmsg putpmsg
  afs_syscall tuxcall security vserver
)";

constexpr SyscallName kRefusedNewCalls[] = {
    {"statmount", 457},
    {"listmount", 458},
    {"open_tree_attr", 467},
#if defined(__x86_64__)
    {"uretprobe", 335},
#endif
};

constexpr uint32_t kAllBits = 0xffffffff;
// socket(2) keeps SOCK_NONBLOCK and SOCK_CLOEXEC above these bits.
constexpr uint32_t kSocketType = 0xf;
constexpr uint32_t kNamespaceFlags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                     CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
// Not in Debian 12's headers: PR_FUTEX_HASH, since Linux 6.16.
constexpr uint32_t kPrFutexHash = 78;
constexpr uint32_t kNetlinkRoute = 0;

FilteredSyscall allow_only(std::string_view name, std::vector<ArgClause> clauses) {
  return {{name}, std::move(clauses), SeccompVerdict::Allow, SeccompVerdict::NotPermitted};
}

FilteredSyscall refuse_only(std::string_view name, std::vector<ArgClause> clauses) {
  return {{name}, std::move(clauses), SeccompVerdict::NotPermitted, SeccompVerdict::Allow};
}

// AF_UNIX needs no look at type or protocol: the kernel has only three kinds. Everything else that
// 2026's privilege escalations went through (ALG, RXRPC, RDS, VSOCK, XDP, MPTCP, UDPLITE, raw and
// ping sockets, netlink protocols other than ROUTE) stays out.
FilteredSyscall filter_socket() {
  const ArgMatch internet{0, kAllBits, {AF_INET, AF_INET6}};
  return allow_only(
      "socket", {
                    {{0, kAllBits, {AF_UNIX}}},
                    {internet, {1, kSocketType, {SOCK_STREAM}}, {2, kAllBits, {0, IPPROTO_TCP}}},
                    {internet, {1, kSocketType, {SOCK_DGRAM}}, {2, kAllBits, {0, IPPROTO_UDP}}},
                    {{0, kAllBits, {AF_NETLINK}}, {2, kAllBits, {kNetlinkRoute}}},
                });
}

std::vector<FilteredSyscall> filtered_calls() {
  return {
      allow_only("clone", {{{0, kNamespaceFlags, {0}}}}),
      filter_socket(),
      allow_only("socketpair", {{{0, kAllBits, {AF_UNIX}}}}),
      // Linux, Linux32 and UNAME26 with or without; never READ_IMPLIES_EXEC or no randomization.
      allow_only(
          "personality",
          {{{0,
             kAllBits,
             {PER_LINUX, PER_LINUX32, UNAME26, PER_LINUX32 | uint32_t(UNAME26), 0xffffffff}}}}),
      // glibc has not used requeueing to a priority-inheriting futex since 2.25.
      refuse_only("futex",
                  {{{1, uint32_t(FUTEX_CMD_MASK), {FUTEX_WAIT_REQUEUE_PI, FUTEX_CMP_REQUEUE_PI}}}}),
      // Typing into the terminal's input queue, the console's, and loading line disciplines.
      refuse_only("ioctl", {{{1, kAllBits, {TIOCSTI, TIOCLINUX, TIOCSETD}}}}),
      // Core scheduling belongs to the host: a cookie per thread idles the sibling hyperthreads.
      refuse_only("prctl", {{{0, kAllBits, {PR_SET_MM, PR_SCHED_CORE, kPrFutexHash}}}}),
      // Kernel TLS and other upper layer protocols.
      refuse_only("setsockopt", {{{1, kAllBits, {IPPROTO_TCP}}, {2, kAllBits, {TCP_ULP}}}}),
  };
}

void append(std::vector<SyscallName>& to, std::string_view names) {
  constexpr std::string_view kSpace = " \n";
  for (size_t begin = names.find_first_not_of(kSpace); begin != names.npos;) {
    const size_t end = names.find_first_of(kSpace, begin);
    to.push_back({names.substr(begin, end - begin)});
    begin = names.find_first_not_of(kSpace, end);
  }
}

void append(std::vector<SyscallName>& to, std::span<const SyscallName> names) {
  to.insert(to.end(), names.begin(), names.end());
}

SeccompPolicy make_main_policy() {
  SeccompPolicy policy;
  for (std::string_view names : {kFiles, kInputOutput, kNetwork, kMemory, kProcesses, kSignals,
                                 kInterprocess, kTimeAndScheduling}) {
    append(policy.allowed, names);
  }
  append(policy.allowed, kNewCalls);
  for (std::string_view names :
       {kMountsAndNamespaces, kOtherProcesses, kKernelSurface, kNumaPolicy, kHost, kObsolete}) {
    append(policy.refused, names);
  }
  append(policy.refused, kRefusedNewCalls);
  policy.filtered = filtered_calls();
  return policy;
}

}  // namespace

const SeccompPolicy& main_seccomp_policy() {
  static const SeccompPolicy policy = make_main_policy();
  return policy;
}

}  // namespace atl
