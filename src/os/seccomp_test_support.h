// Shared by the seccomp tests.
#pragma once

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "os/bpf_evaluator.h"

namespace atl::seccomp_testing {

inline std::string describe_action(uint32_t action) {
  if (action == SECCOMP_RET_ALLOW) return "ALLOW";
  if (action == (SECCOMP_RET_ERRNO | EPERM)) return "EPERM";
  if (action == (SECCOMP_RET_ERRNO | ENOSYS)) return "ENOSYS";
  return "action " + std::to_string(action);
}

inline std::string verdict_on(std::span<const sock_filter> filter, uint32_t arch, uint32_t number,
                              const std::array<uint64_t, 6>& args = {}) {
  seccomp_data data{};
  data.nr = int(number);
  data.arch = arch;
  for (size_t i = 0; i < args.size(); ++i) data.args[i] = args[i];
  const Result<BpfVerdict> verdict = evaluate_bpf(filter, data);
  return verdict ? describe_action(verdict->action) : verdict.error().message();
}

// Only system calls: runs in forked children.
inline bool install(std::span<const sock_filter> filter) {
  sock_fprog program{uint16_t(filter.size()), const_cast<sock_filter*>(filter.data())};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

}  // namespace atl::seccomp_testing
