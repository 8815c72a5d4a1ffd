// Every address is local: two addresses on lo, and a local default route for each family.
#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "os/gate.h"
#include "os/netlink.h"

namespace atl::os {
namespace {

constexpr uint16_t kMake = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE;
constexpr int kLoopback = 1;  // lo is the first interface of every network namespace

struct Bytes {
  unsigned char data[16];
  size_t size;
};

Bytes bytes_of(int family) {
  Bytes bytes{};
  bytes.size = family == AF_INET ? 4 : 16;
  inet_pton(family, family == AF_INET ? kInsideV4 : kInsideV6, bytes.data);
  return bytes;
}

void add_address(NetlinkBatch& batch, int family) {
  Bytes bytes = bytes_of(family);
  ifaddrmsg header{};
  header.ifa_family = static_cast<uint8_t>(family);
  header.ifa_prefixlen = family == AF_INET ? 32 : 128;
  header.ifa_flags = family == AF_INET ? 0 : IFA_F_NODAD;
  header.ifa_index = kLoopback;
  batch.begin(RTM_NEWADDR, kMake, &header, sizeof header);
  batch.put(IFA_LOCAL, bytes.data, bytes.size);
  batch.put(IFA_ADDRESS, bytes.data, bytes.size);
}

void add_route(NetlinkBatch& batch, int family, uint16_t more_flags) {
  Bytes bytes = bytes_of(family);
  rtmsg header{};
  header.rtm_family = static_cast<uint8_t>(family);
  header.rtm_table = RT_TABLE_LOCAL;
  header.rtm_protocol = RTPROT_STATIC;
  header.rtm_scope = RT_SCOPE_HOST;
  header.rtm_type = RTN_LOCAL;
  batch.begin(RTM_NEWROUTE, static_cast<uint16_t>(kMake | more_flags), &header, sizeof header);
  batch.put_value(RTA_OIF, uint32_t{kLoopback});
  batch.put(RTA_PREFSRC, bytes.data, bytes.size);
}

}  // namespace

Result<void> make_all_addresses_local() {
  NetlinkBatch batch;
  add_address(batch, AF_INET);
  add_address(batch, AF_INET6);
  add_route(batch, AF_INET, 0);
  add_route(batch, AF_INET6, NLM_F_ACK);
  return send_netlink(NETLINK_ROUTE, batch.bytes(), "the sandbox's routes");
}

}  // namespace atl::os
