#include "os/nft_ruleset.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>

#include "os/gate.h"

namespace atl::os {
namespace {

constexpr std::string_view kChainName = "out";
constexpr uint16_t kFamily = 1;  // NFPROTO_INET: both

uint16_t message(uint16_t kind) {
  return static_cast<uint16_t>((NFNL_SUBSYS_NFTABLES << 8) | kind);
}

}  // namespace

// One expression of a rule, from its name to its end.
class NftRuleset::Expression {
 public:
  Expression(NetlinkBatch& batch, std::string_view name)
      : batch_(batch), element_(batch.open(NFTA_LIST_ELEM)) {
    batch_.put(NFTA_EXPR_NAME, name);
    data_ = batch_.open(NFTA_EXPR_DATA);
  }
  ~Expression() {
    batch_.close(data_);
    batch_.close(element_);
  }

 private:
  NetlinkBatch& batch_;
  size_t element_;
  size_t data_;
};

NftRuleset::NftRuleset(const NftChain& chain) : chain_(chain) {
  control(NFNL_MSG_BATCH_BEGIN);
  begin(NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);  // it stays with its namespace
  batch_.put(NFTA_TABLE_NAME, chain_.table);
  begin(NFT_MSG_NEWCHAIN, NLM_F_CREATE);
  batch_.put(NFTA_CHAIN_TABLE, chain_.table);
  batch_.put(NFTA_CHAIN_NAME, kChainName);
  size_t hook = batch_.open(NFTA_CHAIN_HOOK);
  batch_.put_be32(NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
  batch_.put_be32(NFTA_HOOK_PRIORITY, static_cast<uint32_t>(chain_.priority));
  batch_.close(hook);
  batch_.put_be32(NFTA_CHAIN_POLICY, NF_ACCEPT);
  batch_.put(NFTA_CHAIN_TYPE, chain_.type);
}

void NftRuleset::begin_rule(bool last) {
  begin(NFT_MSG_NEWRULE,
        static_cast<uint16_t>(NLM_F_CREATE | NLM_F_APPEND | (last ? NLM_F_ACK : 0)));
  batch_.put(NFTA_RULE_TABLE, chain_.table);
  batch_.put(NFTA_RULE_CHAIN, kChainName);
  expressions_ = batch_.open(NFTA_RULE_EXPRESSIONS);
}

void NftRuleset::protocol(uint8_t number) {
  meta(NFT_META_L4PROTO);
  equals(&number, 1);
}

void NftRuleset::port(uint32_t offset, uint16_t number) {
  uint16_t value = htons(number);
  payload(NFT_PAYLOAD_TRANSPORT_HEADER, offset, sizeof value);
  equals(&value, sizeof value);
}

void NftRuleset::destination(uint8_t family, const void* address, size_t size) {
  meta(NFT_META_NFPROTO);
  equals(&family, 1);
  payload(NFT_PAYLOAD_NETWORK_HEADER, family == NFPROTO_IPV4 ? 16 : 24,
          static_cast<uint32_t>(size));
  equals(address, size);
}

void NftRuleset::verdict(int32_t code) {
  Expression e(batch_, "immediate");
  batch_.put_be32(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
  size_t data = batch_.open(NFTA_IMMEDIATE_DATA);
  size_t verdict = batch_.open(NFTA_DATA_VERDICT);
  batch_.put_be32(NFTA_VERDICT_CODE, static_cast<uint32_t>(code));
  batch_.close(verdict);
  batch_.close(data);
}

void NftRuleset::reject() {
  Expression e(batch_, "reject");
  batch_.put_be32(NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
  batch_.put_value(NFTA_REJECT_ICMP_CODE, uint8_t{NFT_REJECT_ICMPX_ADMIN_PROHIBITED});
}

void NftRuleset::redirect(uint16_t port) {
  constexpr uint32_t kPortGiven = 2;  // NF_NAT_RANGE_PROTO_SPECIFIED
  uint16_t value = htons(port);
  {
    Expression e(batch_, "immediate");
    batch_.put_be32(NFTA_IMMEDIATE_DREG, NFT_REG_1);
    size_t data = batch_.open(NFTA_IMMEDIATE_DATA);
    batch_.put(NFTA_DATA_VALUE, &value, sizeof value);
    batch_.close(data);
  }
  Expression e(batch_, "redir");
  batch_.put_be32(NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
  batch_.put_be32(NFTA_REDIR_FLAGS, kPortGiven);
}

void NftRuleset::for_inside(int32_t verdict_code) {
  unsigned char loopback4 = 127, inside4[4], loopback6[16], inside6[16];
  inet_pton(AF_INET, kInsideV4, inside4);
  inet_pton(AF_INET6, "::1", loopback6);
  inet_pton(AF_INET6, kInsideV6, inside6);
  auto rule = [&](uint8_t family, const void* address, size_t size) {
    begin_rule();
    destination(family, address, size);
    verdict(verdict_code);
    end_rule();
  };
  rule(NFPROTO_IPV4, &loopback4, 1);
  rule(NFPROTO_IPV4, inside4, sizeof inside4);
  rule(NFPROTO_IPV6, loopback6, sizeof loopback6);
  rule(NFPROTO_IPV6, inside6, sizeof inside6);
}

const std::string& NftRuleset::finish() {
  control(NFNL_MSG_BATCH_END);
  return batch_.bytes();
}

void NftRuleset::begin(uint16_t kind, uint16_t flags) {
  nfgenmsg header{.nfgen_family = kFamily, .version = NFNETLINK_V0, .res_id = 0};
  batch_.begin(message(kind), static_cast<uint16_t>(NLM_F_REQUEST | flags), &header, sizeof header);
}

void NftRuleset::control(uint16_t kind) {
  nfgenmsg header{
      .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
  batch_.begin(kind, NLM_F_REQUEST, &header, sizeof header);
}

void NftRuleset::meta(uint32_t key) {
  Expression e(batch_, "meta");
  batch_.put_be32(NFTA_META_DREG, NFT_REG_1);
  batch_.put_be32(NFTA_META_KEY, key);
}

void NftRuleset::payload(uint32_t base, uint32_t offset, uint32_t size) {
  Expression e(batch_, "payload");
  batch_.put_be32(NFTA_PAYLOAD_DREG, NFT_REG_1);
  batch_.put_be32(NFTA_PAYLOAD_BASE, base);
  batch_.put_be32(NFTA_PAYLOAD_OFFSET, offset);
  batch_.put_be32(NFTA_PAYLOAD_LEN, size);
}

void NftRuleset::equals(const void* data, size_t size) {
  Expression e(batch_, "cmp");
  batch_.put_be32(NFTA_CMP_SREG, NFT_REG_1);
  batch_.put_be32(NFTA_CMP_OP, NFT_CMP_EQ);
  size_t value = batch_.open(NFTA_CMP_DATA);
  batch_.put(NFTA_DATA_VALUE, data, size);
  batch_.close(value);
}

}  // namespace atl::os
