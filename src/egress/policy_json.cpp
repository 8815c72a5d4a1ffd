// Reading policies.
#include "egress/policy_json.h"

#include <re2/re2.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <set>

#include "egress/address.h"
#include "egress/name.h"
#include "http/headers.h"
#include "http/json.h"

namespace atl::egress {
namespace {

namespace json = boost::json;
using http::JsonObjectReader;

constexpr size_t kMaxDomains = 10'000;
constexpr size_t kMaxSubnets = 10'000;
constexpr size_t kMaxRules = 100;  // of one domain
constexpr size_t kMaxText = 8192;
constexpr size_t kMaxBody = 64u << 10;

Error bad(const std::string& field, std::string message) {
  return Error(ErrorCode::InvalidArgument, std::move(message)).with_field(field);
}

std::string item(const std::string& field, size_t index) {
  return field + "[" + std::to_string(index) + "]";
}

Result<std::string> string_at(const json::value& value, const std::string& field) {
  if (!value.is_string()) return fail(bad(field, "this is a text"));
  if (value.get_string().size() > kMaxText) return fail(bad(field, "at most 8192 bytes"));
  return std::string(value.get_string());
}

Result<uint16_t> parse_port(std::string_view text, const std::string& field) {
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc() && end == text.data() + text.size() && port != 0) return port;
  return fail(bad(field, "'" + std::string(text.substr(0, 32)) + "' is not a port"));
}

Result<std::vector<uint16_t>> read_ports(const json::value* value, const std::string& field) {
  std::vector<uint16_t> ports;
  if (value == nullptr || value->is_null()) return ports;
  if (!value->is_array()) return fail(bad(field, "a list of ports"));
  for (const json::value& one : value->get_array()) {
    bool fits = one.is_int64() && one.get_int64() >= 1 && one.get_int64() <= 65535;
    if (!fits) return fail(bad(field, "a port is a whole number from 1 to 65535"));
    ports.push_back(static_cast<uint16_t>(one.get_int64()));
  }
  if (ports.empty()) return fail(bad(field, "leave the ports out, or name at least one"));
  return ports;
}

Result<TrafficLimits> read_limits(JsonObjectReader& parent, const std::string& field) {
  TrafficLimits limits;
  ATOLL_ASSIGN(auto reader, parent.optional_object(field));
  if (!reader) return limits;
  ATOLL_ASSIGN(auto connections, reader->optional_integer("connections", 1, 1'000'000));
  ATOLL_ASSIGN(auto requests, reader->optional_integer("requestsPerSecond", 1, 1'000'000));
  ATOLL_ASSIGN(auto bytes, reader->optional_integer("bytesPerSecond", 1024, int64_t{1} << 40));
  ATOLL_TRY(reader->finish());
  limits.connections = static_cast<uint32_t>(connections.value_or(0));
  limits.requests_per_second = static_cast<uint32_t>(requests.value_or(0));
  limits.bytes_per_second = static_cast<uint64_t>(bytes.value_or(0));
  return limits;
}

// {"exact": ...}, {"startsWith": ...} or {"regex": ...}
Result<TextMatch> read_matcher(const json::value& value, const std::string& field) {
  if (!value.is_object() || value.get_object().size() != 1) {
    return fail(bad(field, "one of exact, startsWith and regex"));
  }
  const auto& [key, content] = *value.get_object().begin();
  TextMatch match;
  ATOLL_ASSIGN(match.text, string_at(content, field + "." + std::string(key)));
  if (key == "exact") {
    match.kind = TextMatch::Kind::Exact;
  } else if (key == "startsWith") {
    match.kind = TextMatch::Kind::Prefix;
  } else if (key == "regex") {
    match.kind = TextMatch::Kind::Regex;
    RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(1 << 20);
    RE2 expression(match.text, options);
    if (!expression.ok()) return fail(bad(field + ".regex", expression.error()));
  } else {
    return fail(bad(field, "one of exact, startsWith and regex"));
  }
  return match;
}

Result<std::vector<PairMatch>> read_pairs(const json::value* value, const std::string& field) {
  std::vector<PairMatch> pairs;
  if (value == nullptr || value->is_null()) return pairs;
  if (!value->is_array()) return fail(bad(field, "a list of {key, value}"));
  for (size_t i = 0; i < value->get_array().size(); i++) {
    const json::value& one = value->get_array()[i];
    if (!one.is_object()) return fail(bad(item(field, i), "an object with key and value"));
    PairMatch pair;
    for (const auto& part : one.get_object()) {
      std::string name = item(field, i) + "." + std::string(part.key());
      if (part.key() != "key" && part.key() != "value") return fail(bad(name, "unknown field"));
      ATOLL_ASSIGN(TextMatch match, read_matcher(part.value(), name));
      (part.key() == "key" ? pair.key : pair.value) = std::move(match);
    }
    if (!pair.key && !pair.value) return fail(bad(item(field, i), "give key, value or both"));
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

Result<RequestMatch> read_match(const json::value& value, const std::string& field) {
  RequestMatch match;
  if (!value.is_object()) return fail(bad(field, "an object"));
  JsonObjectReader reader(value.get_object(), field);
  if (const json::value* path = reader.any("path"); path != nullptr && !path->is_null()) {
    ATOLL_ASSIGN(match.path, read_matcher(*path, field + ".path"));
  }
  ATOLL_ASSIGN(match.methods, reader.string_array("method"));
  for (std::string& method : match.methods) {
    for (char& c : method) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    if (!http::is_token(method)) return fail(bad(field + ".method", "not a method"));
  }
  ATOLL_ASSIGN(match.query, read_pairs(reader.any("queryString"), field + ".queryString"));
  ATOLL_ASSIGN(match.headers, read_pairs(reader.any("headers"), field + ".headers"));
  ATOLL_TRY(reader.finish());
  return match;
}

// Fields that belong to the connection, not to a policy.
bool is_framing(std::string_view name) {
  for (std::string_view taken :
       {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"}) {
    if (http::equals_ignoring_case(name, taken)) return true;
  }
  return false;
}

Result<void> check_header(std::string_view name, std::string_view value, const std::string& field) {
  if (!http::is_token(name)) return fail(bad(field, "not a header's name"));
  if (is_framing(name)) return fail(bad(field, "this header is not a policy's to set"));
  if (!http::is_field_value(value)) return fail(bad(field, "a header's value is one line"));
  return {};
}

Result<Transform> read_transform(const json::value& value, const std::string& field) {
  Transform transform;
  if (!value.is_object()) return fail(bad(field, "an object with headers"));
  JsonObjectReader reader(value.get_object(), field);
  const json::value* headers = reader.any("headers");
  if (headers != nullptr && !headers->is_null()) {
    if (!headers->is_object()) return fail(bad(field + ".headers", "an object"));
    for (const auto& one : headers->get_object()) {
      std::string where = field + ".headers." + std::string(one.key());
      if (one.value().is_null()) {
        ATOLL_TRY(check_header(one.key(), "", where));
        transform.headers[std::string(one.key())] = std::nullopt;
        continue;
      }
      ATOLL_ASSIGN(std::string text, string_at(one.value(), where));
      ATOLL_TRY(check_header(one.key(), text, where));
      transform.headers[std::string(one.key())] = std::move(text);
    }
  }
  ATOLL_ASSIGN(transform.query, reader.string_map("query"));
  ATOLL_TRY(reader.finish());
  return transform;
}

Result<CannedResponse> read_response(const json::value& value, const std::string& field) {
  CannedResponse response;
  if (!value.is_object()) return fail(bad(field, "an object with statusCode"));
  JsonObjectReader reader(value.get_object(), field);
  ATOLL_ASSIGN(int64_t status, reader.require_integer("statusCode", 200, 599));
  ATOLL_ASSIGN(response.headers, reader.string_map("headers"));
  ATOLL_ASSIGN(auto body, reader.optional_string("body"));
  ATOLL_ASSIGN(auto type, reader.optional_string("contentType"));
  ATOLL_TRY(reader.finish());
  response.status = static_cast<uint16_t>(status);
  response.body = body.value_or("");
  if (response.body.size() > kMaxBody) return fail(bad(field + ".body", "at most 65536 bytes"));
  if (type) response.headers["Content-Type"] = *type;
  for (const auto& [name, text] : response.headers) {
    ATOLL_TRY(check_header(name, text, field + ".headers." + name));
  }
  return response;
}

Result<void> check_forward(const std::string& url, const std::string& field) {
  constexpr std::string_view kScheme = "https://";
  bool plain = url.find_first_of(" ?#@\\\r\n\t") == url.npos;
  if (!url.starts_with(kScheme) || !plain) {
    return fail(bad(field, "an https URL without user, query and fragment"));
  }
  std::string_view host = std::string_view(url).substr(kScheme.size());
  host = host.substr(0, host.find('/'));
  size_t colon = host.find(':');
  if (colon != host.npos) ATOLL_TRY(parse_port(host.substr(colon + 1), field));
  if (!canonical_name(host.substr(0, colon))) return fail(bad(field, "the URL names no host"));
  return {};
}

Result<DomainRule> read_rule(const json::value& value, const std::string& field) {
  if (!value.is_object()) return fail(bad(field, "an object"));
  JsonObjectReader reader(value.get_object(), field);
  DomainRule rule;
  if (const json::value* match = reader.any("match"); match != nullptr && !match->is_null()) {
    ATOLL_ASSIGN(rule.match, read_match(*match, field + ".match"));
  }
  int actions = 0;
  if (const json::value* list = reader.any("transform"); list != nullptr && !list->is_null()) {
    actions++;
    if (!list->is_array()) return fail(bad(field + ".transform", "a list of {headers}"));
    for (size_t i = 0; i < list->get_array().size(); i++) {
      ATOLL_ASSIGN(Transform transform,
                   read_transform(list->get_array()[i], item(field + ".transform", i)));
      rule.transforms.push_back(std::move(transform));
    }
  }
  ATOLL_ASSIGN(auto forward, reader.optional_string("forwardURL"));
  if (forward) {
    actions++;
    ATOLL_TRY(check_forward(*forward, field + ".forwardURL"));
    rule.forward_url = *forward;
  }
  if (const json::value* reply = reader.any("response"); reply != nullptr && !reply->is_null()) {
    actions++;
    ATOLL_ASSIGN(rule.response, read_response(*reply, field + ".response"));
  }
  ATOLL_TRY(reader.finish());
  if (actions != 1) {
    return fail(bad(field, "exactly one of transform, forwardURL and response"));
  }
  return rule;
}

Result<std::vector<DomainRule>> read_rules(const json::value& value, const std::string& field) {
  std::vector<DomainRule> rules;
  if (!value.is_array()) return fail(bad(field, "a list of rules"));
  const json::array& list = value.get_array();
  if (list.size() > kMaxRules) return fail(bad(field, "at most 100 rules a domain"));
  for (size_t i = 0; i < list.size(); i++) {
    ATOLL_ASSIGN(DomainRule rule, read_rule(list[i], item(field, i)));
    rules.push_back(std::move(rule));
  }
  return rules;
}

// "host" or "host:port"
Result<DomainPermit> read_domain(std::string_view text, const std::string& field) {
  DomainPermit permit;
  size_t colon = text.find(':');
  if (colon != text.npos) {
    ATOLL_ASSIGN(uint16_t port, parse_port(text.substr(colon + 1), field));
    permit.ports.push_back(port);
    text = text.substr(0, colon);
  }
  if (text == "*") {
    permit.domain = "*";
    return permit;
  }
  bool wild = text.starts_with("*.");
  auto name = canonical_name(wild ? text.substr(2) : text);
  if (!name) {
    bool address = IpAddress::parse(text).has_value();
    return fail(bad(field, "'" + std::string(text.substr(0, 64)) + "' is not a domain; " +
                               (address ? "addresses go into subnets.allow"
                                        : "write example.org, *.example.org, * or host:port; names "
                                          "beyond ASCII as xn--")));
  }
  permit.domain = (wild ? "*." : "") + *name;
  return permit;
}

Result<DomainPermit> read_permit(std::string_view key, const json::value& value,
                                 const std::string& field) {
  ATOLL_ASSIGN(DomainPermit permit, read_domain(key, field));
  if (value.is_array()) {
    ATOLL_ASSIGN(permit.rules, read_rules(value, field));
    return permit;
  }
  if (!value.is_object()) return fail(bad(field, "a list of rules, or {rules, ports, limits}"));
  JsonObjectReader reader(value.get_object(), field);
  if (const json::value* rules = reader.any("rules"); rules != nullptr && !rules->is_null()) {
    ATOLL_ASSIGN(permit.rules, read_rules(*rules, field + ".rules"));
  }
  ATOLL_ASSIGN(auto ports, read_ports(reader.any("ports"), field + ".ports"));
  if (!ports.empty() && !permit.ports.empty()) {
    return fail(bad(field + ".ports", "the domain has a port already"));
  }
  if (!ports.empty()) permit.ports = std::move(ports);
  ATOLL_ASSIGN(permit.limits, read_limits(reader, "limits"));
  ATOLL_TRY(reader.finish());
  return permit;
}

Result<void> read_allow(const json::value& value, const std::string& field, NetworkPolicy& policy) {
  if (value.is_array()) {
    for (size_t i = 0; i < value.get_array().size(); i++) {
      ATOLL_ASSIGN(std::string text, string_at(value.get_array()[i], item(field, i)));
      ATOLL_ASSIGN(DomainPermit permit, read_domain(text, item(field, i)));
      policy.domains.push_back(std::move(permit));
    }
  } else if (value.is_object()) {
    for (const auto& entry : value.get_object()) {
      std::string where = field + "." + std::string(entry.key());
      ATOLL_ASSIGN(DomainPermit permit, read_permit(entry.key(), entry.value(), where));
      policy.domains.push_back(std::move(permit));
    }
  } else {
    return fail(bad(field, "a list of domains, or an object from domains to rules"));
  }
  if (policy.domains.size() > kMaxDomains) return fail(bad(field, "at most 10000 domains"));
  return {};
}

// "192.0.2.0/24", or {"subnet": ..., "ports": [...]}.
Result<SubnetPermit> read_subnet(const json::value& value, const std::string& field) {
  SubnetPermit permit;
  if (value.is_object()) {
    JsonObjectReader reader(value.get_object(), field);
    ATOLL_ASSIGN(permit.subnet, reader.require_string("subnet"));
    ATOLL_ASSIGN(permit.ports, read_ports(reader.any("ports"), field + ".ports"));
    ATOLL_TRY(reader.finish());
  } else {
    ATOLL_ASSIGN(permit.subnet, string_at(value, field));
  }
  auto subnet = Subnet::parse(permit.subnet);
  if (!subnet) return fail(bad(field, subnet.error().message()));
  permit.subnet = subnet->text();
  return permit;
}

Result<void> read_subnets(JsonObjectReader& reader, NetworkPolicy& policy) {
  auto list = [&](std::string_view name, auto&& add) -> Result<void> {
    std::string field = "subnets." + std::string(name);
    const json::value* value = reader.any(name);
    if (value == nullptr || value->is_null()) return {};
    if (!value->is_array()) return fail(bad(field, "a list of subnets"));
    if (value->get_array().size() > kMaxSubnets) return fail(bad(field, "at most 10000 subnets"));
    for (size_t i = 0; i < value->get_array().size(); i++) {
      ATOLL_ASSIGN(SubnetPermit permit, read_subnet(value->get_array()[i], item(field, i)));
      add(std::move(permit));
    }
    return {};
  };
  ATOLL_TRY(list("allow", [&](SubnetPermit p) { policy.allow_subnets.push_back(std::move(p)); }));
  ATOLL_TRY(list("deny", [&](SubnetPermit p) { policy.deny_subnets.push_back(p.subnet); }));
  return reader.finish();
}

}  // namespace

Result<NetworkPolicy> policy_from(const json::value& value, const std::string& field) {
  NetworkPolicy policy;
  if (value.is_string()) {
    if (value.get_string() == "deny-all") return policy;
    policy.mode = NetworkPolicy::Mode::AllowAll;
    if (value.get_string() == "allow-all") return policy;
  }
  if (!value.is_object()) {
    return fail(bad(field, "\"allow-all\", \"deny-all\", or an object with allow and subnets"));
  }
  policy.mode = NetworkPolicy::Mode::Rules;
  JsonObjectReader reader(value.get_object(), field);
  if (const json::value* list = reader.any("allow"); list != nullptr && !list->is_null()) {
    ATOLL_TRY(read_allow(*list, field + ".allow", policy));
  }
  ATOLL_ASSIGN(auto subnets, reader.optional_object("subnets"));
  if (subnets) ATOLL_TRY(read_subnets(*subnets, policy));
  ATOLL_ASSIGN(policy.limits, read_limits(reader, "limits"));
  ATOLL_TRY(reader.finish());
  return policy;
}

Result<NetworkPolicy> parse_policy(std::string_view text) {
  constexpr size_t kMaxPolicy = 4u << 20;
  ATOLL_ASSIGN(auto document, http::JsonDocument::parse(text, kMaxPolicy));
  return policy_from(document.value(), "network");
}

void add_permit(NetworkPolicy& policy, DomainPermit permit) {
  if (policy.mode == NetworkPolicy::Mode::DenyAll) policy.mode = NetworkPolicy::Mode::Rules;
  for (DomainPermit& there : policy.domains) {
    if (there.domain != permit.domain || there.ports != permit.ports) continue;
    for (DomainRule& rule : permit.rules) there.rules.push_back(std::move(rule));
    return;
  }
  policy.domains.push_back(std::move(permit));
}

Result<void> allow(NetworkPolicy& policy, std::string_view destination) {
  if (auto subnet = Subnet::parse(destination)) {
    if (policy.mode == NetworkPolicy::Mode::DenyAll) policy.mode = NetworkPolicy::Mode::Rules;
    policy.allow_subnets.push_back({.subnet = subnet->text(), .ports = {}});
    return {};
  }
  ATOLL_ASSIGN(DomainPermit permit, read_domain(destination, "network.allow"));
  add_permit(policy, std::move(permit));
  return {};
}

Result<void> deny(NetworkPolicy& policy, std::string_view text) {
  ATOLL_ASSIGN(Subnet subnet, Subnet::parse(text));
  if (policy.mode == NetworkPolicy::Mode::AllowAll) {
    policy.domains.push_back({.domain = "*", .ports = {}, .rules = {}, .limits = {}});
    policy.allow_subnets.push_back({.subnet = "0.0.0.0/0", .ports = {}});
    policy.allow_subnets.push_back({.subnet = "::/0", .ports = {}});
  }
  policy.mode = NetworkPolicy::Mode::Rules;
  policy.deny_subnets.push_back(subnet.text());
  return {};
}

Result<DomainPermit> parse_injection(std::string_view text) {
  const std::string field = "network.inject";
  size_t first = text.find(": ");
  size_t second = first == text.npos ? text.npos : text.find(": ", first + 2);
  if (second == text.npos) {
    return fail(bad(field,
                    "write it as 'HOST: HEADER: VALUE', for example 'api.example.org: "
                    "Authorization: Bearer ${API_KEY}'"));
  }
  ATOLL_ASSIGN(DomainPermit permit, read_domain(text.substr(0, first), field));
  std::string name(text.substr(first + 2, second - first - 2));
  std::string value(text.substr(second + 2));
  ATOLL_TRY(check_header(name, value, field));
  DomainRule rule;
  rule.transforms.emplace_back().headers[name] = value;
  permit.rules.push_back(std::move(rule));
  return permit;
}

Result<NetworkPolicy> policy_from_tangle_network(const json::object& object,
                                                 const std::string& field) {
  JsonObjectReader reader(object, field);
  ATOLL_ASSIGN(auto block, reader.optional_bool("blockOutbound"));
  ATOLL_ASSIGN(auto list, reader.string_array("allowList"));
  ATOLL_ASSIGN(auto ports, read_ports(reader.any("ports"), field + ".ports"));
  ATOLL_TRY(reader.finish());
  NetworkPolicy policy;
  if (!block.value_or(false) && list.empty()) policy.mode = NetworkPolicy::Mode::AllowAll;
  for (const std::string& destination : list) {
    auto added = allow(policy, destination);
    if (!added) return fail(bad(field + ".allowList", added.error().message()));
  }
  return policy;
}

Result<NetworkPolicy> policy_from_tangle_egress(const json::object& object,
                                                const std::string& field) {
  JsonObjectReader reader(object, field);
  ATOLL_ASSIGN(std::string mode, reader.require_string("mode"));
  ATOLL_ASSIGN(auto domains, reader.string_array("allowDomains"));
  ATOLL_ASSIGN(auto implicit, reader.optional_bool("includeImplicitDomains"));
  ATOLL_TRY(reader.finish());
  if (implicit.value_or(false)) {
    return fail(Error(ErrorCode::NotSupported, "this server allows no domains by itself")
                    .with_field(field + ".includeImplicitDomains"));
  }
  NetworkPolicy policy;
  if (mode != "strict" && !domains.empty()) {
    return fail(bad(field + ".allowDomains", "domains are for the mode strict"));
  }
  if (mode == "open") {
    policy.mode = NetworkPolicy::Mode::AllowAll;
  } else if (mode == "strict") {
    policy.mode = NetworkPolicy::Mode::Rules;
    for (size_t i = 0; i < domains.size(); i++) {
      ATOLL_ASSIGN(DomainPermit permit, read_domain(domains[i], item(field + ".allowDomains", i)));
      add_permit(policy, std::move(permit));
    }
  } else if (mode != "blocked") {
    return fail(bad(field + ".mode", "open, strict or blocked"));
  }
  return policy;
}

}  // namespace atl::egress
