// Prints what the filters cost and holds them to bounds that do not depend on the machine. For
// comparison it compiles the same lists with libseccomp, whose answers must also be the same.
#include <gtest/gtest.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <string>

#include "base/unique_fd.h"
#include "os/exec_filter.h"
#include "os/seccomp_filter.h"
#include "os/seccomp_test_support.h"

namespace atl {
namespace {

using namespace seccomp_testing;
using Filter = std::vector<sock_filter>;

int number_of(const SyscallName& call) {
  return call.number ? int(*call.number)
                     : seccomp_syscall_resolve_name(std::string(call.name).c_str());
}

Filter export_filter(scmp_filter_ctx context) {
  UniqueFd file(memfd_create("bpf", MFD_CLOEXEC));
  EXPECT_EQ(seccomp_export_bpf(context, file.get()), 0);
  Filter filter(size_t(lseek(file.get(), 0, SEEK_END)) / sizeof(sock_filter));
  EXPECT_GT(pread(file.get(), filter.data(), filter.size() * sizeof(sock_filter), 0), 0);
  return filter;
}

// The plain lists only: libseccomp cannot express the argument rules.
Filter compile_with_libseccomp(const SeccompPolicy& policy, uint32_t optimize) {
  scmp_filter_ctx context = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
  seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
  seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, optimize);
  for (const SyscallName& call : policy.allowed) {
    EXPECT_EQ(seccomp_rule_add(context, SCMP_ACT_ALLOW, number_of(call), 0), 0) << call.name;
  }
  for (const SyscallName& call : policy.refused) {
    EXPECT_EQ(seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), number_of(call), 0), 0);
  }
  Filter filter = export_filter(context);
  seccomp_release(context);
  return filter;
}

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Median over fresh processes: a process pays once, and filters accumulate.
int64_t median_install_ns(const Filter& filter) {
  constexpr int kRounds = 101;
  auto* times =
      static_cast<int64_t*>(mmap(nullptr, sizeof(int64_t) * kRounds, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int round = 0; round < kRounds; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
      const int64_t begin = now_ns();
      const bool installed = install(filter);
      times[round] = now_ns() - begin;
      _exit(installed ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::nth_element(times, times + kRounds / 2, times + kRounds);
  const int64_t median = times[kRounds / 2];
  munmap(times, sizeof(int64_t) * kRounds);
  return median;
}

uint32_t longest_path(const Filter& filter) {
  uint32_t longest = 0;
  for (int number = 0; number < 600; ++number) {
    seccomp_data data{};
    data.nr = number;
    data.arch = AUDIT_ARCH_X86_64;
    longest = std::max(longest, evaluate_bpf(filter, data)->steps);
  }
  return longest;
}

void report(const char* what, const Filter& filter) {
  printf("%-28s %4zu instructions, at most %3u executed, install %7lld ns\n", what, filter.size(),
         longest_path(filter), static_cast<long long>(median_install_ns(filter)));
}

SeccompPolicy plain_lists() {
  return {.allowed = main_seccomp_policy().allowed, .refused = main_seccomp_policy().refused};
}

#if defined(__x86_64__)
TEST(SeccompCost, IsReportedBesideLibseccomp) {
  report("atoll", *build_main_filter());
  report("atoll, exec filter", Filter(std::begin(os::kExecFilter), std::end(os::kExecFilter)));
  report("atoll, plain lists", *compile_seccomp(plain_lists()));
  report("libseccomp tree, plain lists", compile_with_libseccomp(plain_lists(), 2));
  report("libseccomp linear", compile_with_libseccomp(plain_lists(), 1));
}

TEST(SeccompCost, StaysWithinAFewComparisons) {
  const Filter filter = *build_main_filter();
  EXPECT_LE(filter.size(), 250u);
  EXPECT_LE(longest_path(filter), 25u);
}

TEST(SeccompFilter, AnswersAsLibseccompDoes) {
  const Filter ours = *compile_seccomp(plain_lists());
  const Filter theirs = compile_with_libseccomp(plain_lists(), 2);
  for (uint32_t arch : {uint32_t(AUDIT_ARCH_X86_64), uint32_t(AUDIT_ARCH_I386)}) {
    for (uint32_t number = 0; number < 2000; ++number) {
      EXPECT_EQ(verdict_on(ours, arch, number), verdict_on(theirs, arch, number)) << number;
      const uint32_t x32 = number | 0x40000000;
      EXPECT_EQ(verdict_on(ours, arch, x32), verdict_on(theirs, arch, x32)) << number;
    }
  }
}
#endif

}  // namespace
}  // namespace atl
