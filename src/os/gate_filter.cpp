// The gate's packet filter: stateless, a handful of rules in raw nf_tables messages.
#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>

#include "os/gate.h"
#include "os/netlink.h"

namespace atl::os {
namespace {

constexpr std::string_view kTable = "atoll";
constexpr std::string_view kChain = "out";
constexpr uint16_t kFamily = 1;  // NFPROTO_INET: both

uint16_t message(uint16_t kind) {
  return static_cast<uint16_t>((NFNL_SUBSYS_NFTABLES << 8) | kind);
}

class Ruleset {
 public:
  Ruleset() {
    control(NFNL_MSG_BATCH_BEGIN);
    begin(NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);  // it stays with its namespace
    batch_.put(NFTA_TABLE_NAME, kTable);
    begin(NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    batch_.put(NFTA_CHAIN_TABLE, kTable);
    batch_.put(NFTA_CHAIN_NAME, kChain);
    size_t hook = batch_.open(NFTA_CHAIN_HOOK);
    batch_.put_be32(NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
    batch_.put_be32(NFTA_HOOK_PRIORITY, 0);
    batch_.close(hook);
    batch_.put_be32(NFTA_CHAIN_POLICY, NF_ACCEPT);
    batch_.put(NFTA_CHAIN_TYPE, "filter");
  }

  void begin_rule(bool last = false) {
    begin(NFT_MSG_NEWRULE,
          static_cast<uint16_t>(NLM_F_CREATE | NLM_F_APPEND | (last ? NLM_F_ACK : 0)));
    batch_.put(NFTA_RULE_TABLE, kTable);
    batch_.put(NFTA_RULE_CHAIN, kChain);
    expressions_ = batch_.open(NFTA_RULE_EXPRESSIONS);
  }
  void end_rule() { batch_.close(expressions_); }

  void meta(uint32_t key) {
    Expression e(batch_, "meta");
    batch_.put_be32(NFTA_META_DREG, NFT_REG_1);
    batch_.put_be32(NFTA_META_KEY, key);
  }
  void payload(uint32_t base, uint32_t offset, uint32_t size) {
    Expression e(batch_, "payload");
    batch_.put_be32(NFTA_PAYLOAD_DREG, NFT_REG_1);
    batch_.put_be32(NFTA_PAYLOAD_BASE, base);
    batch_.put_be32(NFTA_PAYLOAD_OFFSET, offset);
    batch_.put_be32(NFTA_PAYLOAD_LEN, size);
  }
  void equals(const void* data, size_t size) {
    Expression e(batch_, "cmp");
    batch_.put_be32(NFTA_CMP_SREG, NFT_REG_1);
    batch_.put_be32(NFTA_CMP_OP, NFT_CMP_EQ);
    size_t value = batch_.open(NFTA_CMP_DATA);
    batch_.put(NFTA_DATA_VALUE, data, size);
    batch_.close(value);
  }
  void accept() {
    Expression e(batch_, "immediate");
    batch_.put_be32(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    size_t data = batch_.open(NFTA_IMMEDIATE_DATA);
    size_t verdict = batch_.open(NFTA_DATA_VERDICT);
    batch_.put_be32(NFTA_VERDICT_CODE, NF_ACCEPT);
    batch_.close(verdict);
    batch_.close(data);
  }
  void reject() {
    Expression e(batch_, "reject");
    batch_.put_be32(NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
    batch_.put_value(NFTA_REJECT_ICMP_CODE, uint8_t{NFT_REJECT_ICMPX_ADMIN_PROHIBITED});
  }
  void accept_protocol(uint8_t protocol) {
    begin_rule();
    meta(NFT_META_L4PROTO);
    equals(&protocol, 1);
    accept();
    end_rule();
  }
  // Destinations inside the sandbox: the first `size` bytes of the address.
  void accept_inside(uint8_t family, const void* address, size_t size) {
    begin_rule();
    meta(NFT_META_NFPROTO);
    equals(&family, 1);
    payload(NFT_PAYLOAD_NETWORK_HEADER, family == NFPROTO_IPV4 ? 16 : 24,
            static_cast<uint32_t>(size));
    equals(address, size);
    accept();
    end_rule();
  }
  void accept_dns(uint32_t offset) {  // of the source or the destination port
    uint16_t port = htons(53);
    begin_rule();
    uint8_t udp = IPPROTO_UDP;
    meta(NFT_META_L4PROTO);
    equals(&udp, 1);
    payload(NFT_PAYLOAD_TRANSPORT_HEADER, offset, 2);
    equals(&port, 2);
    accept();
    end_rule();
  }
  const std::string& finish() {
    control(NFNL_MSG_BATCH_END);
    return batch_.bytes();
  }

 private:
  // One expression of a rule, from its name to its end.
  class Expression {
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

  void begin(uint16_t kind, uint16_t flags) {
    nfgenmsg header{.nfgen_family = kFamily, .version = NFNETLINK_V0, .res_id = 0};
    batch_.begin(message(kind), static_cast<uint16_t>(NLM_F_REQUEST | flags), &header,
                 sizeof header);
  }
  void control(uint16_t kind) {
    nfgenmsg header{
        .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
    batch_.begin(kind, NLM_F_REQUEST, &header, sizeof header);
  }

  NetlinkBatch batch_;
  size_t expressions_ = 0;
};

std::string filter_bytes() {
  Ruleset rules;
  rules.accept_protocol(IPPROTO_TCP);
  unsigned char loopback4 = 127, inside4[4], loopback6[16], inside6[16];
  inet_pton(AF_INET, kInsideV4, inside4);
  inet_pton(AF_INET6, "::1", loopback6);
  inet_pton(AF_INET6, kInsideV6, inside6);
  rules.accept_inside(NFPROTO_IPV4, &loopback4, 1);
  rules.accept_inside(NFPROTO_IPV4, inside4, 4);
  rules.accept_inside(NFPROTO_IPV6, loopback6, 16);
  rules.accept_inside(NFPROTO_IPV6, inside6, 16);
  rules.accept_dns(2);
  rules.accept_dns(0);
  rules.begin_rule(true);
  rules.reject();
  rules.end_rule();
  return rules.finish();
}

}  // namespace

Result<void> refuse_other_packets() {
  // The same bytes for every sandbox.
  static const std::string bytes = filter_bytes();
  return send_netlink(NETLINK_NETFILTER, bytes, "the gate's filter");
}

}  // namespace atl::os
