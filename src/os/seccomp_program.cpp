#include "os/seccomp_program.h"

#include <algorithm>
#include <utility>

namespace atl {
namespace {
// Conditional jumps have 8 bits. Two are kept back for the hops of the same branch.
constexpr size_t kReach = 253;
constexpr uint32_t kReturn = BPF_RET | BPF_K;
constexpr uint32_t kJump = BPF_JMP | BPF_JA;
}  // namespace

SeccompProgram::Label SeccompProgram::push(uint32_t code, uint32_t k, uint8_t yes, uint8_t no) {
  reversed_.push_back({uint16_t(code), yes, no, k});
  return reversed_.size() - 1;
}

SeccompProgram::Label SeccompProgram::ret(uint32_t action) {
  // Half the reach, so that the code that is about to be put in front can still see it.
  const size_t nearest = reversed_.size() - std::min(reversed_.size(), kReach / 2);
  for (size_t i = reversed_.size(); i > nearest; --i) {
    if (reversed_[i - 1].code == kReturn && reversed_[i - 1].k == action) return i - 1;
  }
  return push(kReturn, action);
}

SeccompProgram::Label SeccompProgram::step(uint32_t code, uint32_t k, Label next) {
  if (distance_to(next) != 0) push(kJump, uint32_t(distance_to(next)));
  return push(code, k);
}

SeccompProgram::Label SeccompProgram::within_reach(Label target) {
  if (distance_to(target) <= kReach) return target;
  return push(kJump, uint32_t(distance_to(target)));
}

SeccompProgram::Label SeccompProgram::branch(uint32_t code, uint32_t k, Label yes, Label no) {
  yes = within_reach(yes);
  no = within_reach(no);
  return push(code, k, uint8_t(distance_to(yes)), uint8_t(distance_to(no)));
}

std::vector<sock_filter> SeccompProgram::take() && {
  std::reverse(reversed_.begin(), reversed_.end());
  return std::move(reversed_);
}

}  // namespace atl
