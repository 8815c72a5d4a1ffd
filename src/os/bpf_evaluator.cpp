#include "os/bpf_evaluator.h"

#include <string.h>

#include <array>
#include <optional>
#include <string>

namespace atl {
namespace {

struct Machine {
  uint32_t a = 0;
  uint32_t x = 0;
  std::array<uint32_t, BPF_MEMWORDS> memory{};
  size_t next = 0;
};

tl::unexpected<Error> invalid(const Machine& machine, std::string_view why) {
  return fail(ErrorCode::InvalidArgument,
              "BPF instruction " + std::to_string(machine.next - 1) + ": " + std::string(why));
}

Result<uint32_t> load_word(const Machine& machine, const seccomp_data& data, uint32_t offset) {
  uint32_t word = 0;
  if (offset % sizeof(word) != 0 || offset > sizeof(data) - sizeof(word)) {
    return invalid(machine, "load outside seccomp_data");
  }
  memcpy(&word, reinterpret_cast<const char*>(&data) + offset, sizeof(word));
  return word;
}

Result<uint32_t> load(const Machine& machine, const sock_filter& op, const seccomp_data& data) {
  switch (BPF_MODE(op.code)) {
    case BPF_ABS:
      return load_word(machine, data, op.k);
    case BPF_IMM:
      return op.k;
    case BPF_LEN:
      return uint32_t(sizeof(data));
    case BPF_MEM:
      if (op.k < BPF_MEMWORDS) return machine.memory[op.k];
      return invalid(machine, "memory slot out of bounds");
    default:
      return invalid(machine, "load mode");
  }
}

// Nothing for an operation that the kernel refuses at run time or does not have.
std::optional<uint32_t> arithmetic(uint16_t op, uint32_t a, uint32_t b) {
  switch (op) {
    case BPF_ADD:
      return a + b;
    case BPF_SUB:
      return a - b;
    case BPF_MUL:
      return a * b;
    case BPF_DIV:
      return b == 0 ? std::nullopt : std::optional(a / b);
    case BPF_AND:
      return a & b;
    case BPF_OR:
      return a | b;
    case BPF_XOR:
      return a ^ b;
    case BPF_LSH:
      return a << (b & 31);
    case BPF_RSH:
      return a >> (b & 31);
    case BPF_NEG:
      return 0 - a;
    default:
      return std::nullopt;
  }
}

std::optional<bool> compare(uint16_t op, uint32_t a, uint32_t b) {
  switch (op) {
    case BPF_JEQ:
      return a == b;
    case BPF_JGT:
      return a > b;
    case BPF_JGE:
      return a >= b;
    case BPF_JSET:
      return (a & b) != 0;
    default:
      return std::nullopt;
  }
}

Result<void> jump(Machine& machine, const sock_filter& op) {
  if (BPF_OP(op.code) == BPF_JA) {
    machine.next += op.k;
    return {};
  }
  const uint32_t operand = BPF_SRC(op.code) == BPF_X ? machine.x : op.k;
  const std::optional<bool> taken = compare(BPF_OP(op.code), machine.a, operand);
  if (!taken) return invalid(machine, "unknown comparison");
  machine.next += *taken ? op.jt : op.jf;
  return {};
}

Result<void> store(Machine& machine, const sock_filter& op, uint32_t value) {
  if (op.k >= BPF_MEMWORDS) return invalid(machine, "memory slot out of bounds");
  machine.memory[op.k] = value;
  return {};
}

// Everything but BPF_RET.
Result<void> execute(Machine& machine, const sock_filter& op, const seccomp_data& data) {
  switch (BPF_CLASS(op.code)) {
    case BPF_LD: {
      ATOLL_ASSIGN(machine.a, load(machine, op, data));
      return {};
    }
    case BPF_LDX: {
      ATOLL_ASSIGN(machine.x, load(machine, op, data));
      return {};
    }
    case BPF_ST:
      return store(machine, op, machine.a);
    case BPF_STX:
      return store(machine, op, machine.x);
    case BPF_JMP:
      return jump(machine, op);
    case BPF_MISC:
      if (BPF_MISCOP(op.code) == BPF_TAX) machine.x = machine.a;
      if (BPF_MISCOP(op.code) == BPF_TXA) machine.a = machine.x;
      return {};
    default: {
      const uint32_t operand = BPF_SRC(op.code) == BPF_X ? machine.x : op.k;
      const std::optional<uint32_t> value = arithmetic(BPF_OP(op.code), machine.a, operand);
      if (!value) return invalid(machine, "arithmetic");
      machine.a = *value;
      return {};
    }
  }
}

}  // namespace

Result<BpfVerdict> evaluate_bpf(std::span<const sock_filter> program, const seccomp_data& data) {
  Machine machine;
  // Jumps only go forward, so this ends.
  for (uint32_t steps = 1; machine.next < program.size(); ++steps) {
    const sock_filter& op = program[machine.next++];
    if (BPF_CLASS(op.code) == BPF_RET) {
      return BpfVerdict{BPF_RVAL(op.code) == BPF_A ? machine.a : op.k, steps};
    }
    ATOLL_TRY(execute(machine, op, data));
  }
  return fail(ErrorCode::InvalidArgument, "BPF program runs off its end");
}

}  // namespace atl
