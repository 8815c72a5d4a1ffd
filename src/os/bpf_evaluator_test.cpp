#include "os/bpf_evaluator.h"

#include <gtest/gtest.h>

#include <vector>

namespace atl {
namespace {

using Program = std::vector<sock_filter>;

sock_filter op(uint32_t code, uint32_t k, uint8_t yes = 0, uint8_t no = 0) {
  return {uint16_t(code), yes, no, k};
}
const sock_filter kReturnA = op(BPF_RET | BPF_A, 0);
const sock_filter kLoadNumber = op(BPF_LD | BPF_W | BPF_ABS, 0);

uint32_t run(const Program& program, int number = 0) {
  seccomp_data data{};
  data.nr = number;
  const Result<BpfVerdict> verdict = evaluate_bpf(program, data);
  EXPECT_TRUE(verdict) << (verdict ? "" : verdict.error().message());
  return verdict ? verdict->action : 0;
}

bool is_refused(const Program& program) { return !evaluate_bpf(program, seccomp_data{}); }

TEST(BpfEvaluator, LoadsTheCallNumberAndReturnsTheAccumulator) {
  EXPECT_EQ(run({kLoadNumber, kReturnA}, 42), 42u);
}

TEST(BpfEvaluator, LoadsBothHalvesOfAnArgument) {
  seccomp_data data{};
  data.args[1] = 0x1122334455667788;
  const Program low = {op(BPF_LD | BPF_W | BPF_ABS, 24), kReturnA};
  const Program high = {op(BPF_LD | BPF_W | BPF_ABS, 28), kReturnA};
  EXPECT_EQ(evaluate_bpf(low, data)->action, 0x55667788u);
  EXPECT_EQ(evaluate_bpf(high, data)->action, 0x11223344u);
}

TEST(BpfEvaluator, ComparesUnsigned) {
  const Program at_least = {kLoadNumber, op(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
                            op(BPF_RET | BPF_K, 1), op(BPF_RET | BPF_K, 2)};
  EXPECT_EQ(run(at_least, -1), 1u);
  EXPECT_EQ(run(at_least, 0x40000000), 1u);
  EXPECT_EQ(run(at_least, 0x3fffffff), 2u);
}

TEST(BpfEvaluator, JumpsForwardUnconditionally) {
  EXPECT_EQ(run({op(BPF_JMP | BPF_JA, 1), op(BPF_RET | BPF_K, 1), op(BPF_RET | BPF_K, 2)}), 2u);
}

TEST(BpfEvaluator, ComputesThroughMemoryAndTheIndexRegister) {
  EXPECT_EQ(run({kLoadNumber, op(BPF_ST, 3), op(BPF_LDX | BPF_MEM, 3),
                 op(BPF_ALU | BPF_ADD | BPF_X, 0), op(BPF_ALU | BPF_XOR | BPF_K, 1), kReturnA},
                20),
            41u);
  EXPECT_EQ(run({op(BPF_LD | BPF_IMM, 6), op(BPF_MISC | BPF_TAX, 0), op(BPF_LD | BPF_IMM, 3),
                 op(BPF_ALU | BPF_LSH | BPF_X, 0), kReturnA}),
            192u);
}

TEST(BpfEvaluator, CountsTheInstructionsItExecuted) {
  const Program program = {kLoadNumber, op(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), kLoadNumber,
                           kReturnA};
  EXPECT_EQ(evaluate_bpf(program, seccomp_data{})->steps, 3u);
}

TEST(BpfEvaluator, RefusesProgramsThatLeaveTheirBounds) {
  EXPECT_TRUE(is_refused({}));
  EXPECT_TRUE(is_refused({kLoadNumber}));
  EXPECT_TRUE(is_refused({op(BPF_JMP | BPF_JA, 0xffffffff), kReturnA}));
  EXPECT_TRUE(is_refused({op(BPF_LD | BPF_W | BPF_ABS, sizeof(seccomp_data)), kReturnA}));
  EXPECT_TRUE(is_refused({op(BPF_LD | BPF_W | BPF_ABS, 2), kReturnA}));
  EXPECT_TRUE(is_refused({op(BPF_ST, BPF_MEMWORDS), kReturnA}));
  EXPECT_TRUE(is_refused({op(BPF_LD | BPF_W | BPF_IND, 0), kReturnA}));
  EXPECT_TRUE(is_refused({op(BPF_ALU | BPF_DIV | BPF_K, 0), kReturnA}));
}

}  // namespace
}  // namespace atl
