// What egress is told: by the server, frames on a stream; by the launcher, datagrams with sockets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atl::wire {

enum class EgressType : uint16_t {
  Failure = 1,
  PolicyRequest,  // from the server: what holds for a slot from now on
  PolicyHolds,
  Traffic,     // unasked, to the server: connections that ended, requests that were refused
  GateOpened,  // from the launcher, with the gate's sockets
  GateClosed,  // from the launcher: the slot has ended
};

struct EgressFailure {
  static constexpr EgressType kType = EgressType::Failure;
  uint8_t code = 0;
  std::string message;
  void visit(auto& v) { v(code, message); }
};

struct NamedSecret {
  std::string name;
  std::string value;
  void visit(auto& v) { v(name, value); }
};

struct PolicyRequest {
  static constexpr EgressType kType = EgressType::PolicyRequest;
  std::string slot;
  std::string policy;  // as JSON
  std::vector<NamedSecret> secrets;
  std::string ca_seed;  // what the sandbox's certificate authority follows from
  void visit(auto& v) { v(slot, policy, secrets, ca_seed); }
};

struct PolicyHolds {
  static constexpr EgressType kType = EgressType::PolicyHolds;
  std::string certificate;  // PEM, of the sandbox's authority; empty: nothing is intercepted
  uint32_t closed = 0;      // connections that were not allowed any more
  void visit(auto& v) { v(certificate, closed); }
};

struct TrafficEntry {
  int64_t at_ms = 0;
  uint8_t allowed = 0;
  std::string protocol;  // dns, tls, http, https, tcp
  std::string name;
  std::string address;
  uint16_t port = 0;
  std::string rule;
  std::string reason;   // of a refusal, or of an end that was not orderly
  std::string request;  // "GET /path", without the query
  uint64_t sent = 0;
  uint64_t received = 0;
  uint32_t duration_ms = 0;
  void visit(auto& v) {
    v(at_ms, allowed, protocol, name, address, port, rule, reason, request, sent, received,
      duration_ms);
  }
};

struct Traffic {
  static constexpr EgressType kType = EgressType::Traffic;
  std::string slot;
  std::vector<TrafficEntry> entries;
  void visit(auto& v) { v(slot, entries); }
};

struct GateOpened {
  static constexpr EgressType kType = EgressType::GateOpened;
  std::string slot;
  void visit(auto& v) { v(slot); }
};

struct GateClosed {
  static constexpr EgressType kType = EgressType::GateClosed;
  std::string slot;
  void visit(auto& v) { v(slot); }
};

}  // namespace atl::wire
