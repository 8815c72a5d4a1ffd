// Policies as JSON: the form of SandboxNetworkPolicy, with ports and limits beside it.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>

#include "atoll/network_policy.h"
#include "base/result.h"

namespace atl::egress {

// Everything is checked: names, subnets, expressions, header names. Errors name the field, which
// begins with `field`.
Result<NetworkPolicy> policy_from(const boost::json::value& value, const std::string& field);
Result<NetworkPolicy> parse_policy(std::string_view text);

// With values of headers for readers: only those that are references to secrets, the rest as
// "<redacted>".
enum class Values { Whole, Redacted };
boost::json::value to_json(const NetworkPolicy& policy, Values values);
std::string write_policy(const NetworkPolicy& policy, Values values = Values::Whole);

// "host: Header: value" as --inject takes it.
Result<DomainPermit> parse_injection(std::string_view text);
// Adds a permit, or its rules to the one that is there.
void add_permit(NetworkPolicy& policy, DomainPermit permit);
// "host", "host:port" or a subnet, as --allow takes it.
Result<void> allow(NetworkPolicy& policy, std::string_view destination);
Result<void> deny(NetworkPolicy& policy, std::string_view subnet);

// Tangle's forms: {blockOutbound, allowList} and {mode, allowDomains}.
Result<NetworkPolicy> policy_from_tangle_network(const boost::json::object& object,
                                                 const std::string& field);
Result<NetworkPolicy> policy_from_tangle_egress(const boost::json::object& object,
                                                const std::string& field);

}  // namespace atl::egress
