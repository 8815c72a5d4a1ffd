// What a sandboxed process may ask of the kernel, as a value. Nothing here compiles or installs:
// seccomp_filter.h does. The reasons for each choice are in the tables of seccomp_policy.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace atl {

enum class SeccompVerdict : uint8_t {
  Allow,
  NotPermitted,    // EPERM: the call exists and we refuse it
  NotImplemented,  // ENOSYS: callers take the fallback they have for older kernels
};

struct SyscallName {
  std::string_view name;
  // For calls younger than libseccomp's tables.
  std::optional<uint32_t> number = std::nullopt;
};

// Holds when (low half of argument `index` & mask) is one of `any_of`. Only the low 32 bits are
// compared, because every parameter we judge is an int to the kernel, which drops the upper half;
// comparing 64 bits lets 0x1'0000'5412 pass for "not TIOCSTI" (CVE-2019-10063).
struct ArgMatch {
  uint8_t index;
  uint32_t mask;
  std::vector<uint32_t> any_of;
};

// Holds when every match does.
using ArgClause = std::vector<ArgMatch>;

struct FilteredSyscall {
  SyscallName syscall;
  std::vector<ArgClause> clauses;
  SeccompVerdict when_any_clause_holds;
  SeccompVerdict otherwise;
};

// A call in no list is unknown and gets NotImplemented, as does every foreign ABI.
struct SeccompPolicy {
  std::vector<SyscallName> allowed;
  std::vector<SyscallName> refused;
  std::vector<FilteredSyscall> filtered;
};

// The policy of the agent and, by inheritance, of every process in a sandbox.
const SeccompPolicy& main_seccomp_policy();

}  // namespace atl
