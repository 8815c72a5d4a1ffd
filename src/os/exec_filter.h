// The small seccomp filter that every command adds to the one it inherits from the agent: clone3
// answers ENOSYS. The agent itself needs clone3 (to start a command inside its cgroup), and
// seccomp cannot look into clone3's argument block, so commands use clone, whose flags the main
// filter checks. ENOSYS, not EPERM: C libraries fall back on the former only.
#pragma once

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

namespace atl::os {

#if defined(__x86_64__)
inline constexpr unsigned kNativeAuditArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
inline constexpr unsigned kNativeAuditArch = AUDIT_ARCH_AARCH64;
#else
#error "no seccomp policy for this architecture"
#endif

// A foreign ABI never gets as far as the second filter's say: the main filter has the stricter
// answer, and the kernel takes the stricter of the two. The check of the architecture stands here
// all the same, because a number means nothing without it; the x32 range is left to the main one.
inline constexpr sock_filter kExecFilter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kNativeAuditArch, 0, 2),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
inline constexpr unsigned short kExecFilterLength = sizeof(kExecFilter) / sizeof(kExecFilter[0]);

}  // namespace atl::os
