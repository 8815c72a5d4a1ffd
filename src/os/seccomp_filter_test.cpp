// The whole truth table of the filter, interpreted in user space and compared with
// tests/data/seccomp_golden.txt. ATOLL_UPDATE_GOLDEN=1 writes that file anew; read the diff.
#include "os/seccomp_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <seccomp.h>
#include <stdlib.h>

#include <fstream>
#include <map>
#include <sstream>

#include "os/exec_filter.h"
#include "os/seccomp_argument_cases.h"
#include "os/seccomp_test_support.h"

namespace atl {
namespace {

using namespace seccomp_testing;

constexpr uint32_t kLastListed = 600;
constexpr uint32_t kLastTried = kLastListed + 1024;
constexpr uint32_t kX32Bit = 0x40000000;

std::map<uint32_t, std::string> names_of_numbers() {
  std::map<uint32_t, std::string> names;
  for (uint32_t number = 0; number <= kLastListed; ++number) {
    char* name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, int(number));
    if (name != nullptr) names[number] = name;
    free(name);
  }
  const SeccompPolicy& policy = main_seccomp_policy();
  for (const auto* list : {&policy.allowed, &policy.refused}) {
    for (const SyscallName& call : *list) {
      if (call.number) names[*call.number] = std::string(call.name);
    }
  }
  return names;
}

void describe_numbers(std::ostream& out, std::span<const sock_filter> filter) {
  const std::map<uint32_t, std::string> names = names_of_numbers();
  for (uint32_t number = 0; number <= kLastListed; ++number) {
    const auto name = names.find(number);
    out << number << ' ' << (name == names.end() ? "-" : name->second) << ' '
        << verdict_on(filter, AUDIT_ARCH_X86_64, number) << '\n';
  }
}

// Ranges of one verdict, for the parts where every number should have the same.
void describe_range(std::ostream& out, std::span<const sock_filter> filter, uint32_t arch,
                    uint32_t first, uint32_t last) {
  uint64_t begin = first;
  for (uint64_t number = first; number <= last; ++number) {
    const std::string verdict = verdict_on(filter, arch, uint32_t(number));
    if (number != last && verdict_on(filter, arch, uint32_t(number + 1)) == verdict) continue;
    out << begin << '-' << number << ' ' << verdict << '\n';
    begin = number + 1;
  }
}

void describe_arguments(std::ostream& out, std::span<const sock_filter> filter) {
  for (const ArgumentCase& call : argument_cases()) {
    out << call.what << ' ' << verdict_on(filter, AUDIT_ARCH_X86_64, call.number, call.args)
        << '\n';
  }
}

std::string describe_filter(std::span<const sock_filter> filter) {
  std::ostringstream out;
  out << "# x86_64, no arguments: number name verdict\n";
  describe_numbers(out, filter);
  out << "# x86_64, beyond\n";
  describe_range(out, filter, AUDIT_ARCH_X86_64, kLastListed + 1, kLastTried);
  describe_range(out, filter, AUDIT_ARCH_X86_64, 0xfffffc00, 0xffffffff);
  out << "# x32\n";
  describe_range(out, filter, AUDIT_ARCH_X86_64, kX32Bit, kX32Bit + kLastTried);
  out << "# i386\n";
  describe_range(out, filter, AUDIT_ARCH_I386, 0, kLastTried);
  out << "# aarch64\n";
  describe_range(out, filter, AUDIT_ARCH_AARCH64, 0, kLastTried);
  out << "# x86_64, arguments\n";
  describe_arguments(out, filter);
  return out.str();
}

constexpr const char* kGoldenPath = ATOLL_SOURCE_DIR "/tests/data/seccomp_golden.txt";

std::vector<sock_filter> main_filter() {
  Result<std::vector<sock_filter>> filter = build_main_filter();
  EXPECT_TRUE(filter) << (filter ? "" : filter.error().message());
  return filter ? *filter : std::vector<sock_filter>();
}

#if defined(__x86_64__)
TEST(SeccompFilter, GivesTheVerdictsOfTheGoldenTable) {
  const std::string actual = describe_filter(main_filter());
  if (getenv("ATOLL_UPDATE_GOLDEN") != nullptr) std::ofstream(kGoldenPath) << actual;
  std::ifstream file(kGoldenPath);
  const std::string golden(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(actual, golden);
}
#endif

TEST(SeccompFilter, AgreesWithThePolicyItWasMadeFrom) {
  const std::vector<sock_filter> filter = main_filter();
  const auto verdict = [&filter](const SyscallName& call) {
    const std::string name(call.name);
    const int number = call.number ? int(*call.number) : seccomp_syscall_resolve_name(name.c_str());
    return name + " " + verdict_on(filter, AUDIT_ARCH_X86_64, uint32_t(number));
  };
  for (const SyscallName& call : main_seccomp_policy().allowed) {
    EXPECT_EQ(verdict(call), std::string(call.name) + " ALLOW");
  }
  for (const SyscallName& call : main_seccomp_policy().refused) {
    EXPECT_EQ(verdict(call), std::string(call.name) + " EPERM");
  }
}

TEST(SeccompFilter, JudgesEveryCallThatLibseccompKnowsByName) {
  std::map<std::string, int> listed;
  const SeccompPolicy& policy = main_seccomp_policy();
  for (const SyscallName& call : policy.allowed) ++listed[std::string(call.name)];
  for (const SyscallName& call : policy.refused) ++listed[std::string(call.name)];
  for (const FilteredSyscall& call : policy.filtered) ++listed[std::string(call.syscall.name)];
  for (const auto& [number, name] : names_of_numbers()) {
    EXPECT_EQ(listed[name], 1) << number << ' ' << name;
  }
}

TEST(SeccompFilter, RefusesAPolicyWithAnUnknownOrRepeatedCall) {
  EXPECT_FALSE(compile_seccomp({.allowed = {{"no_such_call"}}}));
  EXPECT_FALSE(compile_seccomp({.allowed = {{"read"}}, .refused = {{"read"}}}));
}

TEST(SeccompFilter, SkipsCallsThatOnlyOtherArchitecturesHave) {
  EXPECT_TRUE(compile_seccomp({.allowed = {{"sync_file_range2"}, {"read"}}}));
}

TEST(SeccompFilter, FindsFarTargetsInLongPrograms) {
  SeccompPolicy policy;
  for (uint32_t number = 0; number < 3000; number += 3) {
    policy.allowed.push_back({"x", number});
    policy.refused.push_back({"y", number + 1});
  }
  const Result<std::vector<sock_filter>> filter = compile_seccomp(policy);
  ASSERT_TRUE(filter);
  const char* expected[] = {"ALLOW", "EPERM", "ENOSYS"};
  for (uint32_t number = 0; number < 3000; ++number) {
    ASSERT_EQ(verdict_on(*filter, AUDIT_ARCH_X86_64, number), expected[number % 3]) << number;
  }
}

TEST(ExecFilter, TakesAwayOnlyClone3AndForeignArchitectures) {
  for (uint32_t number = 0; number <= kLastTried; ++number) {
    EXPECT_EQ(verdict_on(os::kExecFilter, AUDIT_ARCH_X86_64, number),
              number == SYS_clone3 ? "ENOSYS" : "ALLOW");
    EXPECT_EQ(verdict_on(os::kExecFilter, AUDIT_ARCH_I386, number), "ENOSYS");
    EXPECT_EQ(verdict_on(os::kExecFilter, AUDIT_ARCH_AARCH64, number), "ENOSYS");
  }
}

}  // namespace
}  // namespace atl
