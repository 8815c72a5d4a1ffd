#include "egress/policy.h"

#include <algorithm>
#include <set>

namespace atl::egress {
namespace {

// Calls with the text before each reference, and the name in it.
template <class Text, class Name>
void for_each_part(const std::string& text, Text&& on_text, Name&& on_name) {
  size_t at = 0;
  for (;;) {
    size_t open = text.find("${", at);
    size_t close = open == text.npos ? text.npos : text.find('}', open);
    if (close == text.npos) return on_text(std::string_view(text).substr(at));
    on_text(std::string_view(text).substr(at, open - at));
    on_name(text.substr(open + 2, close - open - 2));
    at = close + 1;
  }
}

bool has(const std::vector<uint16_t>& ports, uint16_t port) {
  return std::find(ports.begin(), ports.end(), port) != ports.end();
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// Names of headers compare without case.
void lower_header_names(NetworkPolicy& policy) {
  for (DomainPermit& permit : policy.domains) {
    for (DomainRule& rule : permit.rules) {
      for (PairMatch& pair : rule.match.headers) {
        bool plain = pair.key && pair.key->kind != TextMatch::Kind::Regex;
        if (plain) pair.key->text = lower(pair.key->text);
      }
    }
  }
}

}  // namespace

std::string_view to_string(Protocol protocol) {
  static constexpr std::string_view kNames[] = {"dns", "tls", "http", "tcp"};
  return kNames[static_cast<size_t>(protocol)];
}

bool has_rules(const NetworkPolicy& policy) {
  return std::ranges::any_of(policy.domains,
                             [](const DomainPermit& permit) { return !permit.rules.empty(); });
}

std::vector<std::string> secret_names(const NetworkPolicy& policy) {
  std::set<std::string> names;
  auto collect = [&](const std::string& text) {
    for_each_part(
        text, [](std::string_view) {}, [&](std::string name) { names.insert(std::move(name)); });
  };
  for (const DomainPermit& permit : policy.domains) {
    for (const DomainRule& rule : permit.rules) {
      for (const Transform& transform : rule.transforms) {
        for (const auto& [name, value] : transform.headers) {
          if (value) collect(*value);
        }
        for (const auto& [name, value] : transform.query) collect(value);
      }
    }
  }
  return {names.begin(), names.end()};
}

Policy::Policy(NetworkPolicy policy, SecretValues secrets)
    : value_(std::move(policy)), secrets_(std::move(secrets)) {
  lower_header_names(value_);
  for (size_t i = 0; i < value_.domains.size(); i++) {
    by_domain_[value_.domains[i].domain].push_back(static_cast<int>(i));
  }
  for (const SubnetPermit& permit : value_.allow_subnets) {
    if (auto subnet = Subnet::parse(permit.subnet)) allow_.push_back({*subnet, &permit.ports});
  }
  for (const std::string& text : value_.deny_subnets) {
    if (auto subnet = Subnet::parse(text)) deny_.push_back(*subnet);
  }
  constexpr size_t kTooShortToHide = 4;
  for (const auto& [name, value] : secrets_) {
    if (value.size() >= kTooShortToHide) hidden_.push_back(value);
  }
  for (const DomainPermit& permit : value_.domains) {
    for (const DomainRule& rule : permit.rules) {
      for (const Transform& transform : rule.transforms) {
        for (const auto& [name, value] : transform.headers) {
          bool literal = value && value->find("${") == value->npos;
          if (literal && value->size() >= 2 * kTooShortToHide) hidden_.push_back(*value);
        }
      }
    }
  }
}

// The most specific domain that has this port: the name itself, then ever shorter suffixes.
int Policy::find(std::string_view name, uint16_t port, Protocol protocol,
                 std::string& wrong_port) const {
  auto look = [&](const std::string& domain) {
    auto found = by_domain_.find(domain);
    if (found == by_domain_.end()) return -1;
    for (int index : found->second) {
      const DomainPermit& permit = this->permit(index);
      bool named =
          protocol == Protocol::Dns || (permit.ports.empty() && protocol != Protocol::Opaque);
      if (named || has(permit.ports, port)) return index;
    }
    wrong_port = domain;
    return -1;
  };
  if (int index = look(std::string(name)); index >= 0) return index;
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    if (int index = look("*" + std::string(name.substr(dot))); index >= 0) return index;
  }
  return look("*");
}

Verdict Policy::judge(std::string_view name, uint16_t port, Protocol protocol) const {
  if (value_.mode == NetworkPolicy::Mode::AllowAll) return {true, "allow-all", "", -1};
  if (denies_all()) return {false, "deny-all", "this sandbox has no network", -1};
  std::string wrong_port;
  int index = find(name, port, protocol, wrong_port);
  if (index >= 0) return {true, permit(index).domain, "", index};
  if (protocol == Protocol::Dns && !allow_.empty()) {
    // A CIDR rule says nothing of names: whoever may connect by address needs none.
    bool all = std::any_of(allow_.begin(), allow_.end(), [](const SubnetRule& rule) {
      return rule.subnet.text() == "0.0.0.0/0" || rule.subnet.text() == "::/0";
    });
    if (all) return {true, "subnets.allow", "", -1};
  }
  if (wrong_port.empty()) {
    return {false, "", "no rule allows " + std::string(name), -1};
  }
  std::string what = protocol == Protocol::Opaque
                         ? "only TLS and HTTP may go there without a rule for host:port"
                         : "its rule is for other ports";
  return {false, wrong_port,
          std::string(name) + " is allowed, but not port " + std::to_string(port) + ": " + what,
          -1};
}

Verdict Policy::judge(const IpAddress& address, uint16_t port) const {
  if (auto rule = denied_by(address)) {
    return {false, *rule, address.text() + " is denied", -1};
  }
  if (value_.mode == NetworkPolicy::Mode::AllowAll) return {true, "allow-all", "", -1};
  if (denies_all()) return {false, "deny-all", "this sandbox has no network", -1};
  for (const SubnetRule& rule : allow_) {
    if (!rule.subnet.contains(address)) continue;
    if (rule.ports->empty() || has(*rule.ports, port)) {
      return {true, "subnets.allow " + rule.subnet.text(), "", -1};
    }
  }
  return {false, "", "no rule allows " + address.text() + " port " + std::to_string(port), -1};
}

std::optional<std::string> Policy::denied_by(const IpAddress& address) const {
  for (const Subnet& subnet : deny_) {
    if (subnet.contains(address)) return "subnets.deny " + subnet.text();
  }
  return std::nullopt;
}

std::vector<std::string> Policy::intercepted_domains() const {
  std::vector<std::string> domains;
  for (const DomainPermit& permit : value_.domains) {
    if (!permit.rules.empty()) domains.push_back(permit.domain);
  }
  return domains;
}

bool Policy::looks_at_paths(int permit) const {
  return permit >= 0 && std::ranges::any_of(this->permit(permit).rules, [](const DomainRule& rule) {
           return rule.match.path.has_value();
         });
}

bool Policy::matches(const TextMatch& match, std::string_view text) const {
  if (match.kind == TextMatch::Kind::Exact) return text == match.text;
  if (match.kind == TextMatch::Kind::Prefix) return text.starts_with(match.text);
  std::unique_ptr<RE2>& expression = expressions_[&match];
  if (expression == nullptr) {
    RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(1 << 20);
    expression = std::make_unique<RE2>(match.text, options);
  }
  return RE2::PartialMatch({text.data(), text.size()}, *expression);
}

bool Policy::any_pair(const PairMatch& match, const auto& pairs) const {
  for (const auto& [name, value] : pairs) {
    if (match.key && !matches(*match.key, name)) continue;
    if (!match.value || matches(*match.value, value)) return true;
  }
  return false;
}

bool Policy::matches(const RequestMatch& match, const RequestView& request) const {
  const auto& methods = match.methods;
  if (!methods.empty() &&
      std::find(methods.begin(), methods.end(), request.method) == methods.end())
    return false;
  if (match.path && !matches(*match.path, request.path)) return false;
  for (const PairMatch& pair : match.query) {
    if (!any_pair(pair, request.query)) return false;
  }
  if (match.headers.empty()) return true;
  std::vector<std::pair<std::string, std::string>> fields;
  for (const http::Field& field : request.headers)
    fields.emplace_back(lower(field.name), field.value);
  for (const PairMatch& pair : match.headers) {
    if (!any_pair(pair, fields)) return false;
  }
  return true;
}

std::optional<std::string> Policy::resolve(const std::string& text, std::string& missing) const {
  std::string out;
  for_each_part(
      text, [&](std::string_view part) { out.append(part); },
      [&](const std::string& name) {
        auto found = secrets_.find(name);
        if (found == secrets_.end()) {
          missing = name;
        } else {
          out.append(found->second);
        }
      });
  // A secret may hold a line end, which a header must not.
  if (!http::is_field_value(out)) missing = "(a value with a line end)";
  if (!missing.empty()) return std::nullopt;
  return out;
}

RequestPlan Policy::plan(int permit, const RequestView& request, bool encrypted) const {
  RequestPlan plan;
  if (permit < 0) return plan;
  for (const DomainRule& rule : this->permit(permit).rules) {
    if (!matches(rule.match, request)) continue;
    if (rule.response) {
      plan.response = &*rule.response;
      return plan;
    }
    if (!rule.forward_url.empty()) {
      plan.forward_url = &rule.forward_url;
      return plan;
    }
    for (const Transform& transform : rule.transforms) {
      for (const auto& [name, value] : transform.headers) {
        if (!value) {
          plan.headers.emplace_back(name, std::nullopt);
        } else if (!encrypted) {
          plan.withheld = true;
        } else if (auto text = resolve(*value, plan.missing_secret)) {
          plan.headers.emplace_back(name, std::move(*text));
        }
      }
      for (const auto& [name, value] : transform.query) {
        if (!encrypted) {
          plan.withheld = true;
        } else if (auto text = resolve(value, plan.missing_secret)) {
          plan.query.emplace_back(name, std::move(*text));
        }
      }
    }
  }
  return plan;
}

}  // namespace atl::egress
