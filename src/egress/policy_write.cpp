// Writing policies.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "egress/policy_json.h"

namespace atl::egress {
namespace {

namespace json = boost::json;

json::object matcher(const TextMatch& match) {
  static constexpr std::string_view kNames[] = {"exact", "startsWith", "regex"};
  return {{kNames[static_cast<size_t>(match.kind)], match.text}};
}

json::array pairs(const std::vector<PairMatch>& list) {
  json::array array;
  for (const PairMatch& pair : list) {
    json::object object;
    if (pair.key) object["key"] = matcher(*pair.key);
    if (pair.value) object["value"] = matcher(*pair.value);
    array.push_back(std::move(object));
  }
  return array;
}

json::object match_json(const RequestMatch& match) {
  json::object object;
  if (match.path) object["path"] = matcher(*match.path);
  if (!match.methods.empty()) {
    object["method"] = json::array(match.methods.begin(), match.methods.end());
  }
  if (!match.query.empty()) object["queryString"] = pairs(match.query);
  if (!match.headers.empty()) object["headers"] = pairs(match.headers);
  return object;
}

// What stands around the reference may be a credential too.
std::string shown(const std::string& value, Values values) {
  if (values == Values::Whole || value.find("${") != value.npos) return value;
  return "<redacted>";
}

json::object transform_json(const Transform& transform, Values values) {
  json::object object, headers, query;
  for (const auto& [name, value] : transform.headers) {
    headers[name] = value ? json::value(shown(*value, values)) : json::value(nullptr);
  }
  for (const auto& [name, value] : transform.query) query[name] = shown(value, values);
  if (!headers.empty()) object["headers"] = std::move(headers);
  if (!query.empty()) object["query"] = std::move(query);
  return object;
}

json::object rule_json(const DomainRule& rule, Values values) {
  json::object object;
  if (rule.match != RequestMatch{}) object["match"] = match_json(rule.match);
  if (!rule.forward_url.empty()) {
    object["forwardURL"] = rule.forward_url;
  } else if (rule.response) {
    json::object headers;
    for (const auto& [name, value] : rule.response->headers) headers[name] = value;
    object["response"] = json::object{{"statusCode", rule.response->status},
                                      {"headers", std::move(headers)},
                                      {"body", rule.response->body}};
  } else {
    json::array transforms;
    for (const Transform& one : rule.transforms) transforms.push_back(transform_json(one, values));
    object["transform"] = std::move(transforms);
  }
  return object;
}

json::object limits_json(const TrafficLimits& limits) {
  json::object object;
  if (limits.connections != 0) object["connections"] = limits.connections;
  if (limits.requests_per_second != 0) object["requestsPerSecond"] = limits.requests_per_second;
  if (limits.bytes_per_second != 0) object["bytesPerSecond"] = limits.bytes_per_second;
  return object;
}

json::value permit_json(const DomainPermit& permit, bool port_in_key, Values values) {
  json::array rules;
  for (const DomainRule& rule : permit.rules) rules.push_back(rule_json(rule, values));
  bool plain = permit.limits == TrafficLimits{} && (permit.ports.empty() || port_in_key);
  if (plain) return rules;
  json::object object{{"rules", std::move(rules)}};
  if (!permit.ports.empty() && !port_in_key) {
    object["ports"] = json::array(permit.ports.begin(), permit.ports.end());
  }
  if (permit.limits != TrafficLimits{}) object["limits"] = limits_json(permit.limits);
  return object;
}

json::object subnets_json(const NetworkPolicy& policy) {
  json::array allow, deny;
  for (const SubnetPermit& permit : policy.allow_subnets) {
    if (permit.ports.empty()) {
      allow.push_back(json::string(permit.subnet));
    } else {
      allow.push_back(
          json::object{{"subnet", permit.subnet},
                       {"ports", json::array(permit.ports.begin(), permit.ports.end())}});
    }
  }
  for (const std::string& subnet : policy.deny_subnets) deny.push_back(json::string(subnet));
  return {{"allow", std::move(allow)}, {"deny", std::move(deny)}};
}

}  // namespace

json::value to_json(const NetworkPolicy& policy, Values values) {
  if (policy.mode == NetworkPolicy::Mode::DenyAll) return "deny-all";
  if (policy.mode == NetworkPolicy::Mode::AllowAll) return "allow-all";
  json::object allow;
  for (const DomainPermit& permit : policy.domains) {
    bool port_in_key = permit.ports.size() == 1;
    std::string key = permit.domain;
    if (port_in_key) key += ":" + std::to_string(permit.ports[0]);
    allow[key] = permit_json(permit, port_in_key, values);
  }
  json::object object{{"allow", std::move(allow)}};
  if (!policy.allow_subnets.empty() || !policy.deny_subnets.empty()) {
    object["subnets"] = subnets_json(policy);
  }
  if (policy.limits != TrafficLimits{}) object["limits"] = limits_json(policy.limits);
  return object;
}

std::string write_policy(const NetworkPolicy& policy, Values values) {
  return json::serialize(to_json(policy, values));
}

}  // namespace atl::egress
