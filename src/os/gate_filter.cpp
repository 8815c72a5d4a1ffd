// The gate's packet filter, stateless; and the redirection for kernels without sk_lookup.
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <netinet/in.h>

#include "os/gate.h"
#include "os/nft_ruleset.h"

namespace atl::os {
namespace {

constexpr uint32_t kSourcePort = 0;
constexpr uint32_t kDestinationPort = 2;

std::string filter_bytes() {
  NftRuleset rules({.table = "atoll", .type = "filter"});
  rules.begin_rule();
  rules.protocol(IPPROTO_TCP);
  rules.verdict(NF_ACCEPT);
  rules.end_rule();
  rules.for_inside(NF_ACCEPT);
  for (uint32_t side : {kDestinationPort, kSourcePort}) {
    rules.begin_rule();
    rules.protocol(IPPROTO_UDP);
    rules.port(side, kGateDnsPort);
    rules.verdict(NF_ACCEPT);
    rules.end_rule();
  }
  rules.begin_rule(true);
  rules.reject();
  rules.end_rule();
  return rules.finish();
}

std::string redirect_bytes() {
  constexpr int32_t kBeforeFilters = -100;
  NftRuleset rules({.table = "atoll_redirect", .type = "nat", .priority = kBeforeFilters});
  rules.for_inside(NFT_RETURN);
  rules.begin_rule();
  rules.protocol(IPPROTO_UDP);
  rules.port(kDestinationPort, kGateDnsPort);
  rules.redirect(kGateDnsPort);
  rules.end_rule();
  rules.begin_rule(true);
  rules.protocol(IPPROTO_TCP);
  rules.redirect(kGateTcpPort);
  rules.end_rule();
  return rules.finish();
}

// Rules that are there from an earlier gate are the same.
Result<void> add_rules(const std::string& bytes, std::string_view what) {
  auto sent = send_netlink(NETLINK_NETFILTER, bytes, what);
  if (!sent && sent.error().sys_errno() == EEXIST) return {};
  return sent;
}

}  // namespace

Result<void> refuse_other_packets() {
  static const std::string bytes = filter_bytes();  // the same for every sandbox
  return add_rules(bytes, "the gate's filter");
}

Result<void> steer_by_redirection() {
  static const std::string bytes = redirect_bytes();
  return add_rules(bytes, "the gate's redirection");
}

}  // namespace atl::os
