// A sandbox's way out: sockets of ours in its network namespace, to which all that it sends to
// elsewhere is brought. There is no device but `lo`: where the gate fails, nothing leaves.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::os {

// A sandbox's own addresses, beside loopback; and those that the sockets are bound to.
inline constexpr const char* kInsideV4 = "10.0.2.15";
inline constexpr const char* kInsideV6 = "fd5b::15";
inline constexpr const char* kGateV4 = "10.0.2.3";
inline constexpr const char* kGateV6 = "fd5b::3";
inline constexpr uint16_t kGateTcpPort = 1;
inline constexpr uint16_t kGateDnsPort = 53;

// What brings connections to the sockets: a BPF program of type sk_lookup, or where the kernel
// refuses that, redirection by nf_tables, which is slower and keeps a table of connections.
enum class Steering : uint8_t { Program, Redirection };

struct Gate {
  // In this order they travel: TCP and UDP for IPv4 and IPv6.
  enum Index { Tcp4, Tcp6, Udp4, Udp6, kCount };
  std::array<UniqueFd, kCount> sockets;
  // As long as it is open, a program steers. With redirection it only says that there is a gate.
  UniqueFd hold;
};

// Opens a gate in the network namespace of the process. What is there of an earlier one is used
// again. The caller's own namespace is `home`; the calling thread returns there.
Result<Gate> open_gate(int pidfd, int home, Steering steering);

// A gate in a namespace that nobody lives in. The first gate of a host changes the kernel's code
// and the last changes it back, which takes milliseconds: one that stays saves them all the others.
Result<Gate> open_spare_gate(int home, Steering steering);

// Addresses and routes that make everything local; in the present namespace.
Result<void> make_all_addresses_local();
// Refuses what neither a rule nor a socket is for, at once: datagrams other than DNS, raw packets.
Result<void> refuse_other_packets();
Result<UniqueFd> steer_by_program(const std::array<UniqueFd, Gate::kCount>& sockets, int netns);
Result<void> steer_by_redirection();

}  // namespace atl::os
