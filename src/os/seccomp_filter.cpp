#include "os/seccomp_filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "os/exec_filter.h"
#include "os/seccomp_program.h"

namespace atl {
namespace {

constexpr uint32_t kLoadWord = BPF_LD | BPF_W | BPF_ABS;
constexpr uint32_t kJumpIfEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr uint32_t kJumpIfAtLeast = BPF_JMP | BPF_JGE | BPF_K;
using Label = SeccompProgram::Label;

uint32_t action_of(SeccompVerdict verdict) {
  switch (verdict) {
    case SeccompVerdict::Allow:
      return SECCOMP_RET_ALLOW;
    case SeccompVerdict::NotPermitted:
      return SECCOMP_RET_ERRNO | EPERM;
    case SeccompVerdict::NotImplemented:
      break;
  }
  return SECCOMP_RET_ERRNO | ENOSYS;
}

// What happens to a call: a fixed verdict, or the verdict of its argument clauses.
struct Outcome {
  SeccompVerdict verdict = SeccompVerdict::NotImplemented;
  const FilteredSyscall* filtered = nullptr;
  bool operator==(const Outcome&) const = default;
};

// All numbers from `first` up to the next run's.
struct Run {
  uint32_t first;
  Outcome outcome;
};

using Table = std::map<uint32_t, Outcome>;

Result<void> add_call(Table& table, const SyscallName& call, Outcome outcome) {
  int64_t number = call.number.value_or(0);
  if (!call.number) {
    number = seccomp_syscall_resolve_name(std::string(call.name).c_str());
    if (number == __NR_SCMP_ERROR) {
      return fail(ErrorCode::Internal, "seccomp policy: no such call: " + std::string(call.name));
    }
    // libseccomp numbers calls that this architecture never had below zero.
    if (number < 0) return {};
  }
  if (!table.emplace(uint32_t(number), outcome).second) {
    return fail(ErrorCode::Internal, "seccomp policy: listed twice: " + std::string(call.name));
  }
  return {};
}

Result<Table> number_calls(const SeccompPolicy& policy) {
  Table table;
  for (const SyscallName& call : policy.allowed) {
    ATOLL_TRY(add_call(table, call, {SeccompVerdict::Allow}));
  }
  for (const SyscallName& call : policy.refused) {
    ATOLL_TRY(add_call(table, call, {SeccompVerdict::NotPermitted}));
  }
  for (const FilteredSyscall& call : policy.filtered) {
    ATOLL_TRY(add_call(table, call.syscall, {call.otherwise, &call}));
  }
  return table;
}

// Numbers between and after the known ones are unknown. The last run reaches to 2^32, so it also
// takes the x32 ABI, which is bit 30 of the number.
std::vector<Run> make_runs(const Table& table) {
  std::vector<Run> runs = {{0, Outcome{}}};
  const auto start_run = [&runs](uint32_t first, Outcome outcome) {
    if (runs.back().outcome == outcome) return;
    if (runs.back().first == first) runs.pop_back();
    runs.push_back({first, outcome});
  };
  uint32_t next = 0;
  for (const auto& [number, outcome] : table) {
    if (number != next) start_run(next, Outcome{});
    start_run(number, outcome);
    next = number + 1;
  }
  start_run(next, Outcome{});
  return runs;
}

Label compile_match(SeccompProgram& program, const ArgMatch& match, Label yes, Label no) {
  Label entry = no;
  for (uint32_t value : match.any_of) {
    entry = program.branch(kJumpIfEqual, value, yes, entry);
  }
  if (match.mask != 0xffffffff) entry = program.step(BPF_ALU | BPF_AND | BPF_K, match.mask, entry);
  // The low half of an argument comes first: both architectures are little-endian.
  const size_t offset = offsetof(seccomp_data, args) + 8 * match.index;
  return program.step(kLoadWord, uint32_t(offset), entry);
}

Label compile_clauses(SeccompProgram& program, const FilteredSyscall& call) {
  const Label hit = program.ret(action_of(call.when_any_clause_holds));
  Label entry = program.ret(action_of(call.otherwise));
  for (auto clause = call.clauses.rbegin(); clause != call.clauses.rend(); ++clause) {
    const Label next_clause = entry;
    entry = hit;
    for (auto match = clause->rbegin(); match != clause->rend(); ++match) {
      entry = compile_match(program, *match, entry, next_clause);
    }
  }
  return entry;
}

// A binary search: one comparison halves the runs.
Label compile_runs(SeccompProgram& program, const Run* begin, const Run* end) {
  if (end - begin == 1) {
    const Outcome& outcome = begin->outcome;
    if (outcome.filtered != nullptr) return compile_clauses(program, *outcome.filtered);
    return program.ret(action_of(outcome.verdict));
  }
  const Run* middle = begin + (end - begin) / 2;
  const Label upper = compile_runs(program, middle, end);
  const Label lower = compile_runs(program, begin, middle);
  return program.branch(kJumpIfAtLeast, middle->first, upper, lower);
}

// A call through another ABI has other numbers: int 0x80 on x86-64 makes i386 calls.
std::vector<sock_filter> finish(SeccompProgram program, Label by_number) {
  const Label foreign = program.ret(action_of(SeccompVerdict::NotImplemented));
  Label entry = program.step(kLoadWord, offsetof(seccomp_data, nr), by_number);
  entry = program.branch(kJumpIfEqual, os::kNativeAuditArch, entry, foreign);
  program.step(kLoadWord, offsetof(seccomp_data, arch), entry);
  return std::move(program).take();
}

}  // namespace

Result<std::vector<sock_filter>> compile_seccomp(const SeccompPolicy& policy) {
  ATOLL_ASSIGN(const Table table, number_calls(policy));
  const std::vector<Run> runs = make_runs(table);
  SeccompProgram program;
  const Label by_number = compile_runs(program, runs.data(), runs.data() + runs.size());
  std::vector<sock_filter> filter = finish(std::move(program), by_number);
  if (filter.size() > BPF_MAXINSNS) {
    return fail(ErrorCode::Internal, "seccomp policy: too long for the kernel");
  }
  return filter;
}

Result<std::vector<sock_filter>> build_main_filter() {
  return compile_seccomp(main_seccomp_policy());
}

}  // namespace atl
