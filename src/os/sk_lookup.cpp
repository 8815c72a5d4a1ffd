// Steering by a BPF program of type sk_lookup, written as instructions: no compiler, no library.
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "os/gate.h"

namespace atl::os {
namespace {

int bpf(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

uint32_t word_of(const char* text, int family, size_t index) {
  unsigned char bytes[16]{};
  inet_pton(family, text, bytes);
  uint32_t word = 0;
  memcpy(&word, bytes + 4 * index, sizeof word);  // as the program loads it
  return word;
}

// A program under construction; jumps go forward to labels.
class Assembler {
 public:
  enum Label { Pass, Drop, Family6, NotLoopback6, Protocol, Steer, kLabels };

  void add(uint8_t code, uint8_t to, uint8_t from, int16_t offset, int32_t value) {
    bpf_insn one{};
    one.code = code;
    one.dst_reg = to & 15;
    one.src_reg = from & 15;
    one.off = offset;
    one.imm = value;
    code_.push_back(one);
  }
  void load32(uint8_t to, uint8_t from, size_t offset) {
    add(BPF_LDX | BPF_MEM | BPF_W, to, from, static_cast<int16_t>(offset), 0);
  }
  void move(uint8_t to, uint8_t from) { add(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
  void set(uint8_t to, int32_t value) { add(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value); }
  void call(int32_t helper) { add(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }
  // 32-bit comparison with a constant.
  void jump_if(uint8_t operation, uint8_t reg, uint32_t value, Label label) {
    wants_.push_back({code_.size(), label});
    add(static_cast<uint8_t>(BPF_JMP32 | operation | BPF_K), reg, 0, 0,
        static_cast<int32_t>(value));
  }
  void jump_if_null(uint8_t reg, Label label) {
    wants_.push_back({code_.size(), label});
    add(BPF_JMP | BPF_JEQ | BPF_K, reg, 0, 0, 0);
  }
  void jump(Label label) {
    wants_.push_back({code_.size(), label});
    add(BPF_JMP | BPF_JA, 0, 0, 0, 0);
  }
  void load_map(uint8_t to, int fd) {
    add(BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, fd);
    add(0, 0, 0, 0, 0);
  }
  void here(Label label) { places_[label] = code_.size(); }
  void leave(int32_t verdict) {
    set(BPF_REG_0, verdict);
    add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
  }

  std::vector<bpf_insn> finish() {
    for (const Want& want : wants_) {
      code_[want.at].off = static_cast<int16_t>(places_[want.label] - want.at - 1);
    }
    return code_;
  }

 private:
  struct Want {
    size_t at;
    Label label;
  };
  std::vector<bpf_insn> code_;
  std::vector<Want> wants_;
  size_t places_[kLabels]{};
};

// The sandbox's own addresses keep their ordinary sockets; TCP and DNS to all others go to ours,
// and nowhere where ours are gone.
std::vector<bpf_insn> program(int map) {
  using A = Assembler;
  constexpr uint8_t kContext = BPF_REG_6, kWord = BPF_REG_2, kKey = BPF_REG_7, kSocket = BPF_REG_8;
  Assembler a;
  a.move(kContext, BPF_REG_1);
  a.load32(kWord, kContext, offsetof(bpf_sk_lookup, family));
  a.jump_if(BPF_JNE, kWord, AF_INET, A::Family6);
  a.set(kKey, 0);
  a.load32(kWord, kContext, offsetof(bpf_sk_lookup, local_ip4));
  a.jump_if(BPF_JEQ, kWord, word_of(kInsideV4, AF_INET, 0), A::Pass);
  a.add(BPF_ALU | BPF_AND | BPF_K, kWord, 0, 0, 0xff);  // the first byte
  a.jump_if(BPF_JEQ, kWord, 127, A::Pass);
  a.jump(A::Protocol);

  a.here(A::Family6);
  a.set(kKey, 1);
  constexpr size_t kLocal6 = offsetof(bpf_sk_lookup, local_ip6);
  for (size_t i = 0; i < 4; i++) {
    a.load32(kWord, kContext, kLocal6 + 4 * i);
    a.jump_if(BPF_JNE, kWord, word_of("::1", AF_INET6, i), A::NotLoopback6);
  }
  a.jump(A::Pass);
  a.here(A::NotLoopback6);
  for (size_t i = 0; i < 4; i++) {
    a.load32(kWord, kContext, kLocal6 + 4 * i);
    a.jump_if(BPF_JNE, kWord, word_of(kInsideV6, AF_INET6, i), A::Protocol);
  }
  a.jump(A::Pass);

  a.here(A::Protocol);
  a.load32(kWord, kContext, offsetof(bpf_sk_lookup, protocol));
  a.jump_if(BPF_JEQ, kWord, IPPROTO_TCP, A::Steer);
  a.jump_if(BPF_JNE, kWord, IPPROTO_UDP, A::Pass);
  a.load32(kWord, kContext, offsetof(bpf_sk_lookup, local_port));
  a.jump_if(BPF_JNE, kWord, 53, A::Pass);
  a.add(BPF_ALU64 | BPF_ADD | BPF_K, kKey, 0, 0, Gate::Udp4);

  a.here(A::Steer);
  a.add(BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, kKey, -4, 0);
  a.load_map(BPF_REG_1, map);
  a.move(BPF_REG_2, BPF_REG_10);
  a.add(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4);
  a.call(BPF_FUNC_map_lookup_elem);
  a.jump_if_null(BPF_REG_0, A::Drop);
  a.move(kSocket, BPF_REG_0);
  a.move(BPF_REG_1, kContext);
  a.move(BPF_REG_2, kSocket);
  a.set(BPF_REG_3, 0);
  a.call(BPF_FUNC_sk_assign);
  a.move(BPF_REG_9, BPF_REG_0);
  a.move(BPF_REG_1, kSocket);
  a.call(BPF_FUNC_sk_release);
  a.jump_if(BPF_JNE, BPF_REG_9, 0, A::Drop);
  a.here(A::Pass);
  a.leave(SK_PASS);
  a.here(A::Drop);
  a.leave(SK_DROP);
  return a.finish();
}

Result<UniqueFd> make_map(const std::array<UniqueFd, Gate::kCount>& sockets) {
  bpf_attr make{};
  make.map_type = BPF_MAP_TYPE_SOCKMAP;
  make.key_size = sizeof(uint32_t);
  make.value_size = sizeof(uint64_t);
  make.max_entries = Gate::kCount;
  UniqueFd map(bpf(BPF_MAP_CREATE, make));
  if (!map.valid()) return fail_errno("bpf", "a map of sockets");
  for (uint32_t key = 0; key < Gate::kCount; key++) {
    auto value = static_cast<uint64_t>(sockets[key].get());
    bpf_attr set{};
    set.map_fd = static_cast<uint32_t>(map.get());
    set.key = reinterpret_cast<uintptr_t>(&key);
    set.value = reinterpret_cast<uintptr_t>(&value);
    if (bpf(BPF_MAP_UPDATE_ELEM, set) != 0) return fail_errno("bpf", "a socket of the gate");
  }
  return map;
}

}  // namespace

Result<UniqueFd> steer_by_program(const std::array<UniqueFd, Gate::kCount>& sockets, int netns) {
  ATOLL_ASSIGN(UniqueFd map, make_map(sockets));
  std::vector<bpf_insn> code = program(map.get());
  bpf_attr load{};
  load.prog_type = BPF_PROG_TYPE_SK_LOOKUP;
  load.expected_attach_type = BPF_SK_LOOKUP;
  load.insns = reinterpret_cast<uintptr_t>(code.data());
  load.insn_cnt = static_cast<uint32_t>(code.size());
  load.license = reinterpret_cast<uintptr_t>("Apache-2.0");
  strcpy(load.prog_name, "atoll_gate");
  UniqueFd program_fd(bpf(BPF_PROG_LOAD, load));
  if (!program_fd.valid()) return fail_errno("bpf", "the gate's program");
  bpf_attr link{};
  link.link_create.prog_fd = static_cast<uint32_t>(program_fd.get());
  link.link_create.target_fd = static_cast<uint32_t>(netns);
  link.link_create.attach_type = BPF_SK_LOOKUP;
  UniqueFd fd(bpf(BPF_LINK_CREATE, link));
  if (!fd.valid()) return fail_errno("bpf", "the gate's link");
  return fd;
}

}  // namespace atl::os
