#include "api/e2b/network_body.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "egress/policy_json.h"
#include "http/headers.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;
using http::JsonObjectReader;
using Mode = NetworkPolicy::Mode;

constexpr std::string_view kEverything[] = {"0.0.0.0/0", "::/0"};

Error bad(const std::string& field, std::string message) {
  return Error(ErrorCode::InvalidArgument, std::move(message)).with_field(field);
}

bool says_nothing(const json::value* value) {
  return value == nullptr || value->is_null() ||
         (value->is_array() && value->get_array().empty()) ||
         (value->is_object() && value->get_object().empty());
}

bool is_everything(const std::string& subnet) {
  return std::find(std::begin(kEverything), std::end(kEverything), subnet) != std::end(kEverything);
}

// [{"transform":{"headers":{"Authorization":".."}}}, ...] of one domain.
Result<DomainPermit> read_rules(const std::string& domain, const json::value& value) {
  std::string field = "network.rules." + domain;
  if (!value.is_array()) return fail(bad(field, "a list of rules"));
  DomainPermit permit{.domain = domain};
  for (const json::value& item : value.get_array()) {
    if (!item.is_object()) return fail(bad(field, "a rule is {transform: {headers}}"));
    JsonObjectReader rule(item.get_object(), field);
    ATOLL_ASSIGN(auto transform, rule.require_object("transform"));
    ATOLL_ASSIGN(auto headers, transform.string_map("headers"));
    ATOLL_TRY(transform.finish());
    ATOLL_TRY(rule.finish());
    DomainRule made;
    made.transforms.emplace_back();
    for (auto& [name, text] : headers) made.transforms.back().headers[name] = std::move(text);
    permit.rules.push_back(std::move(made));
  }
  return permit;
}

struct Wishes {
  std::vector<std::string> allow;
  std::vector<std::string> deny;
  std::vector<DomainPermit> rules;
  std::optional<bool> public_traffic;
  std::optional<std::string> host;
};

Result<Wishes> read_wishes(JsonObjectReader& network) {
  Wishes wishes;
  ATOLL_ASSIGN(wishes.allow, network.string_array("allowOut"));
  ATOLL_ASSIGN(wishes.deny, network.string_array("denyOut"));
  ATOLL_ASSIGN(wishes.public_traffic, network.optional_bool("allowPublicTraffic"));
  ATOLL_ASSIGN(wishes.host, network.optional_string("maskRequestHost"));
  const json::value* rules = network.any("rules");
  if (!says_nothing(rules)) {
    if (!rules->is_object()) return fail(bad("network.rules", "an object of domains"));
    for (const auto& [domain, list] : rules->get_object()) {
      ATOLL_ASSIGN(DomainPermit permit, read_rules(std::string(domain), list));
      wishes.rules.push_back(std::move(permit));
    }
  }
  for (const char* name : {"egressProxy", "dnsServers", "httpsPorts"}) {
    if (says_nothing(network.any(name))) continue;
    return fail(Error(ErrorCode::NotSupported,
                      std::string("'network.") + name + "' is not supported by this server")
                    .with_field(std::string("network.") + name));
  }
  ATOLL_TRY(network.finish());
  return wishes;
}

Result<void> add_allowed(NetworkPolicy& policy, const std::vector<std::string>& destinations) {
  for (const std::string& destination : destinations) {
    auto added = egress::allow(policy, destination);
    if (!added) return fail(std::move(added).error().with_field("network.allowOut"));
  }
  return {};
}

Result<void> add_denied(NetworkPolicy& policy, const std::vector<std::string>& subnets) {
  for (const std::string& subnet : subnets) {
    if (is_everything(subnet)) continue;
    auto added = egress::deny(policy, subnet);
    if (!added) return fail(std::move(added).error().with_field("network.denyOut"));
  }
  return {};
}

// Everything is denied but what is allowed. Rules change requests; they allow nothing.
Result<NetworkPolicy> closed(const Wishes& wishes) {
  NetworkPolicy policy;
  if (wishes.allow.empty() && wishes.rules.empty()) return policy;
  policy.mode = Mode::Rules;
  ATOLL_TRY(add_allowed(policy, wishes.allow));
  for (const DomainPermit& permit : wishes.rules) {
    bool allowed =
        std::find(wishes.allow.begin(), wishes.allow.end(), permit.domain) != wishes.allow.end();
    if (!allowed) {
      return fail(bad("network.rules." + permit.domain, "allowOut does not have this domain"));
    }
    egress::add_permit(policy, permit);
  }
  return policy;
}

// Everything is allowed but what is denied, and here a denial has the last word.
Result<NetworkPolicy> open(const Wishes& wishes) {
  NetworkPolicy policy;
  policy.mode = Mode::AllowAll;
  if (!wishes.deny.empty() && !wishes.allow.empty()) {
    return fail(bad("network.allowOut",
                    "an exception from a denied range is not supported: deny 0.0.0.0/0 and allow "
                    "what is to be reached"));
  }
  if (!wishes.rules.empty()) {
    policy.mode = Mode::Rules;
    ATOLL_TRY(add_allowed(policy, {"*", "0.0.0.0/0", "::/0"}));
    for (const DomainPermit& permit : wishes.rules) egress::add_permit(policy, permit);
  }
  ATOLL_TRY(add_denied(policy, wishes.deny));
  return policy;
}

Result<NetworkPolicy> policy_of(std::optional<bool> access, const Wishes& wishes) {
  bool denied =
      !access.value_or(true) || std::any_of(wishes.deny.begin(), wishes.deny.end(), is_everything);
  return denied ? closed(wishes) : open(wishes);
}

}  // namespace

static Result<NetworkWish> wish_of(std::optional<bool> access, const Wishes& wishes,
                                   sandbox::Ingress ingress) {
  if (wishes.public_traffic) {
    ingress.public_ports = *wishes.public_traffic;
    ingress.has_traffic_token = !*wishes.public_traffic;
  }
  if (wishes.host) {
    bool fits = wishes.host->size() <= 255 && http::is_field_value(*wishes.host) &&
                wishes.host->find_first_of(" \t,/") == std::string::npos;
    if (!fits) return fail(bad("network.maskRequestHost", "a host, such as localhost:${PORT}"));
    ingress.host = *wishes.host;
  }
  ATOLL_ASSIGN(NetworkPolicy policy, policy_of(access, wishes));
  return NetworkWish{.policy = std::move(policy), .ingress = std::move(ingress)};
}

Result<NetworkWish> read_network(JsonObjectReader& reader) {
  ATOLL_ASSIGN(auto access, reader.optional_bool("allow_internet_access"));
  ATOLL_ASSIGN(auto network, reader.optional_object("network"));
  Wishes wishes;
  if (network) {
    ATOLL_ASSIGN(wishes, read_wishes(*network));
  }
  return wish_of(access, wishes, {.public_ports = true});
}

Result<NetworkWish> read_network_update(JsonObjectReader& reader, const sandbox::Ingress& present) {
  ATOLL_ASSIGN(auto access, reader.optional_bool("allow_internet_access"));
  ATOLL_ASSIGN(Wishes wishes, read_wishes(reader));
  return wish_of(access, wishes, present);
}

}  // namespace atl::api::e2b
