#include <fmt/format.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <utility>

#include "os/seccomp_argument_cases.h"

namespace atl::seccomp_testing {
namespace {

// The kernel ignores it in an int; so must the filter.
constexpr uint64_t kUpperHalf = 0x1'0000'0000;

class CaseList {
 public:
  template <class... Args>
  void add(const char* name, uint32_t number, Args... args) {
    std::string what = name;
    ((what += fmt::format(" {:#x}", uint64_t(args))), ...);
    cases_.push_back({what, number, {uint64_t(args)...}});
  }
  std::vector<ArgumentCase> take() && { return std::move(cases_); }

 private:
  std::vector<ArgumentCase> cases_;
};

void add_socket_cases(CaseList& list) {
  for (uint64_t family = 0; family <= 46; ++family) {
    for (uint64_t type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET}) {
      list.add("socket", SYS_socket, family, type, 0);
    }
    list.add("socketpair", SYS_socketpair, family, SOCK_STREAM, 0);
  }
  for (uint64_t family : {AF_INET, AF_INET6}) {
    for (uint64_t type : {1, 2, 3, 5, 10, 0x80801, 0x80802, 0x80803}) {
      for (uint64_t protocol : {1, 6, 17, 58, 132, 136, 255, 262}) {
        list.add("socket", SYS_socket, family, type, protocol);
      }
    }
  }
  for (uint64_t protocol = 0; protocol <= 22; ++protocol) {
    list.add("socket", SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  }
  for (uint64_t family : {AF_UNIX, AF_INET, AF_NETLINK, AF_ALG, AF_VSOCK}) {
    for (uint64_t type : {SOCK_STREAM, SOCK_RAW}) {
      list.add("socket", SYS_socket, family | kUpperHalf, type | kUpperHalf, kUpperHalf);
    }
  }
  list.add("socketpair", SYS_socketpair, AF_UNIX | kUpperHalf, SOCK_STREAM, 0);
}

void add_clone_cases(CaseList& list) {
  constexpr uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                               CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                               CLONE_CHILD_CLEARTID;
  for (uint64_t flags : {uint64_t(SIGCHLD), kThread, uint64_t(CLONE_VM | CLONE_VFORK | SIGCHLD)}) {
    list.add("clone", SYS_clone, flags);
    list.add("clone", SYS_clone, flags | kUpperHalf);
  }
  for (int bit = 0; bit < 64; ++bit) list.add("clone", SYS_clone, uint64_t(1) << bit);
  list.add("clone", SYS_clone, CLONE_NEWUSER | kUpperHalf);
  list.add("clone", SYS_clone, ~uint64_t(0));
}

void add_futex_cases(CaseList& list) {
  for (uint64_t op = 0; op <= 14; ++op) {
    for (uint64_t flags : {0, FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME, 384}) {
      list.add("futex", SYS_futex, 0, op | flags);
    }
    list.add("futex", SYS_futex, 0, op | kUpperHalf);
  }
}

void add_edges(CaseList& list, const char* name, uint32_t number, uint64_t first_argument,
               std::initializer_list<uint64_t> values) {
  for (uint64_t value : values) {
    for (uint64_t argument : {value - 1, value, value + 1, value | kUpperHalf}) {
      if (first_argument == 0) list.add(name, number, argument);
      if (first_argument == 1) list.add(name, number, 0, argument);
    }
  }
}

void add_prctl_cases(CaseList& list) {
  for (uint64_t option = 0; option <= 80; ++option) list.add("prctl", SYS_prctl, option);
  add_edges(list, "prctl", SYS_prctl, 0, {PR_SET_MM, PR_SCHED_CORE, PR_SET_VMA, 0xffffffff});
}

void add_setsockopt_cases(CaseList& list) {
  for (int level : {SOL_SOCKET, int(IPPROTO_IP), int(IPPROTO_TCP), int(IPPROTO_UDP)}) {
    for (int option : {TCP_NODELAY, TCP_ULP - 1, TCP_ULP, TCP_ULP + 1}) {
      list.add("setsockopt", SYS_setsockopt, 3, level, option);
    }
  }
  list.add("setsockopt", SYS_setsockopt, 3, IPPROTO_TCP | kUpperHalf, TCP_ULP | kUpperHalf);
}

}  // namespace

std::vector<ArgumentCase> argument_cases() {
  CaseList list;
  add_clone_cases(list);
  add_socket_cases(list);
  add_setsockopt_cases(list);
  add_futex_cases(list);
  add_prctl_cases(list);
  add_edges(list, "ioctl", SYS_ioctl, 1,
            {TIOCSTI, TIOCLINUX, TIOCSETD, TCGETS, TIOCGWINSZ, FIONREAD});
  add_edges(list, "personality", SYS_personality, 0,
            {0, 8, 0x20000, 0x20008, 0x40000, 0x400000, 0xffffffff});
  list.add("personality", SYS_personality, ~uint64_t(0));
  return std::move(list).take();
}

}  // namespace atl::seccomp_testing
