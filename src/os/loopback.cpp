#include "os/loopback.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include "base/unique_fd.h"

namespace atl::os {

Result<void> bring_loopback_up() {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.valid()) return fail_errno("socket", "netlink");
  struct {
    nlmsghdr header;
    ifinfomsg link;
  } request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_NEWLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  request.link.ifi_index = 1;  // lo is the first interface of every network namespace
  request.link.ifi_flags = IFF_UP;
  request.link.ifi_change = IFF_UP;
  if (send(socket.get(), &request, sizeof request, 0) != sizeof request) {
    return fail_errno("send", "netlink");
  }
  struct {
    nlmsghdr header;
    nlmsgerr error;
    char rest[256];
  } reply{};
  ssize_t size = recv(socket.get(), &reply, sizeof reply, 0);
  if (size < static_cast<ssize_t>(sizeof(nlmsghdr) + sizeof(nlmsgerr)))
    return fail_errno("recv", "netlink");
  if (reply.header.nlmsg_type == NLMSG_ERROR && reply.error.error != 0) {
    errno = -reply.error.error;
    return fail_errno("bring up", "lo");
  }
  return {};
}

}  // namespace atl::os
