// One nf_tables table with one chain and its rules, as the bytes of one netlink batch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "os/netlink.h"

namespace atl::os {

struct NftChain {
  std::string_view table;
  std::string_view type;  // "filter" or "nat"
  int32_t priority = 0;
};

// For packets on their way out; those that no rule names are accepted.
class NftRuleset {
 public:
  explicit NftRuleset(const NftChain& chain);

  void begin_rule(bool last = false);
  void end_rule() { batch_.close(expressions_); }

  // Conditions of the rule that was begun.
  void protocol(uint8_t number);
  void port(uint32_t offset, uint16_t number);  // 0: the source's, 2: the destination's
  // The destination's first `size` bytes.
  void destination(uint8_t family, const void* address, size_t size);
  // What it does.
  void verdict(int32_t code);
  void reject();
  void redirect(uint16_t port);

  // A rule of its own for each destination inside the sandbox.
  void for_inside(int32_t verdict_code);

  const std::string& finish();

 private:
  class Expression;

  void begin(uint16_t kind, uint16_t flags);
  void control(uint16_t kind);
  void meta(uint32_t key);
  void payload(uint32_t base, uint32_t offset, uint32_t size);
  void equals(const void* data, size_t size);

  NftChain chain_;
  NetlinkBatch batch_;
  size_t expressions_ = 0;
};

}  // namespace atl::os
