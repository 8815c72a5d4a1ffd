// Runs a seccomp program in user space, so that tests can ask for its verdict on any call without
// making the call.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <span>

#include "base/result.h"

namespace atl {

struct BpfVerdict {
  uint32_t action;  // SECCOMP_RET_... with its data
  uint32_t steps;   // instructions executed
};

// Understands what the kernel accepts in seccomp programs (seccomp_check_filter). Fails on anything
// else and on jumps or memory slots out of bounds.
Result<BpfVerdict> evaluate_bpf(std::span<const sock_filter> program, const seccomp_data& data);

}  // namespace atl
