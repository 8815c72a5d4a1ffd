// The way out of a network namespace that has no interface but lo: every address is local there,
// and connections to foreign ones arrive at sockets that somebody outside holds.
#pragma once

#include <array>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::os {

// A sandbox's own addresses, beside loopback; and those that the sockets are bound to.
inline constexpr const char* kInsideV4 = "10.0.2.15";
inline constexpr const char* kInsideV6 = "fd5b::15";
inline constexpr const char* kGateV4 = "10.0.2.3";
inline constexpr const char* kGateV6 = "fd5b::3";

struct Gate {
  // In this order they travel: TCP and UDP for IPv4 and IPv6.
  enum Index { Tcp4, Tcp6, Udp4, Udp6, kCount };
  std::array<UniqueFd, kCount> sockets;
  UniqueFd link;  // as long as it is open, connections are steered
};

// Opens a gate in the network namespace of the process. What is there of an earlier one is used
// again. The caller's own namespace is `home`; the calling thread returns there.
Result<Gate> open_gate(int pidfd, int home);

// Addresses and routes that make everything local; in the present namespace.
Result<void> make_all_addresses_local();
// Refuses what neither a rule nor a socket is for, at once: datagrams other than DNS, raw packets.
Result<void> refuse_other_packets();
// Steers to these sockets by a BPF program in the present namespace.
Result<UniqueFd> steer_by_bpf(const std::array<UniqueFd, Gate::kCount>& sockets, int netns);

}  // namespace atl::os
