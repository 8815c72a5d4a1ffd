// Ways out of sandboxes: the launcher opens them, egress guards them.
#include "backends/native/native_backend.h"

namespace atl::native {

void NativeBackend::use_egress(std::shared_ptr<EgressClient> egress) {
  egress_ = std::move(egress);
  egress_->on_traffic([this](wire::Traffic traffic) { pass_traffic(std::move(traffic)); });
}

void NativeBackend::pass_traffic(wire::Traffic traffic) {
  if (!traffic_) return;
  for (const auto& [key, handle] : live_) {
    if (handle->slot() != traffic.slot) continue;
    std::vector<NetworkEntry> entries;
    for (wire::TrafficEntry& entry : traffic.entries) {
      entries.push_back({.at_ms = entry.at_ms,
                         .allowed = entry.allowed != 0,
                         .protocol = std::move(entry.protocol),
                         .name = std::move(entry.name),
                         .address = std::move(entry.address),
                         .port = entry.port,
                         .rule = std::move(entry.rule),
                         .reason = std::move(entry.reason),
                         .request = std::move(entry.request),
                         .sent = entry.sent,
                         .received = entry.received,
                         .duration_ms = entry.duration_ms});
    }
    return traffic_(key, std::move(entries));
  }
}

// The gate is made when it is first needed: most sandboxes never have one, and each costs memory.
// The policy is there before the gate, so nothing passes that it does not allow.
Task<Result<NetworkHolds>> NativeHandle::set_network(NetworkRules rules) {
  if (rules.deny_all && !has_gate_) co_return NetworkHolds{};
  if (backend_.egress_ == nullptr) {
    co_return fail(ErrorCode::NotSupported, "this server runs without egress");
  }
  wire::PolicyRequest request{.slot = place_.slot,
                              .policy = std::move(rules.policy),
                              .secrets = {},
                              .ca_seed = std::move(rules.ca_seed)};
  for (auto& [name, value] : rules.secrets) request.secrets.push_back({name, std::move(value)});
  ATOLL_CO_ASSIGN(auto holds,
                  co_await backend_.egress_->call<wire::PolicyHolds>(std::move(request)));
  if (!has_gate_) {
    ATOLL_CO_TRY(co_await backend_.launcher_->tell(wire::GateRequest{.slot = place_.slot}));
    has_gate_ = true;
  }
  co_return NetworkHolds{.certificate = std::move(holds.certificate)};
}

}  // namespace atl::native
