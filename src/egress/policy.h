// A policy ready to judge: what a sandbox may look up, connect to and ask for.
#pragma once

#include <re2/re2.h>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "atoll/network_policy.h"
#include "egress/address.h"
#include "http/headers.h"
#include "http/target.h"

namespace atl::egress {

// How a client has said where it wants to go.
enum class Protocol : uint8_t { Dns, Tls, Http, Opaque };
std::string_view to_string(Protocol protocol);

struct Verdict {
  bool allowed = false;
  std::string rule;    // "api.example.org", "subnets.deny 10.0.0.0/8"; empty: none matched
  std::string reason;  // where it is not allowed
  int permit = -1;     // index of the domain's permit
};

using SecretValues = std::map<std::string, std::string>;

struct RequestView {
  std::string_view method;
  std::string_view path;
  const http::Query& query;
  const http::Headers& headers;
};

// What becomes of one request.
struct RequestPlan {
  const CannedResponse* response = nullptr;
  const std::string* forward_url = nullptr;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;  // none: removed
  std::vector<std::pair<std::string, std::string>> query;
  std::string missing_secret;  // then the request must not go out
  bool withheld = false;       // a rule sets headers, but only over TLS
};

class Policy {
 public:
  Policy(NetworkPolicy policy, SecretValues secrets);
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  const NetworkPolicy& value() const { return value_; }
  bool denies_all() const { return value_.mode == NetworkPolicy::Mode::DenyAll; }

  // By name; an answer for Dns is for any port.
  Verdict judge(std::string_view name, uint16_t port, Protocol protocol) const;
  // By address alone, as CIDR rules and allow-all do.
  Verdict judge(const IpAddress& address, uint16_t port) const;
  // The rule that forbids this address, whatever allows it otherwise.
  std::optional<std::string> denied_by(const IpAddress& address) const;

  const DomainPermit& permit(int index) const { return value_.domains[static_cast<size_t>(index)]; }
  bool looks_at_paths(int permit) const;
  // TLS to such a host is opened, because a rule wants to see or change requests.
  bool intercepts(int permit) const { return permit >= 0 && !this->permit(permit).rules.empty(); }
  std::vector<std::string> intercepted_domains() const;

  RequestPlan plan(int permit, const RequestView& request, bool encrypted) const;
  // Values that must not come back in a response.
  const std::vector<std::string>& values() const { return hidden_; }

 private:
  bool matches(const RequestMatch& match, const RequestView& request) const;
  bool matches(const TextMatch& match, std::string_view text) const;
  bool any_pair(const PairMatch& match, const auto& pairs) const;
  std::optional<std::string> resolve(const std::string& text, std::string& missing) const;
  int find(std::string_view name, uint16_t port, Protocol protocol, std::string& wrong_port) const;

  NetworkPolicy value_;
  SecretValues secrets_;
  std::vector<std::string> hidden_;
  std::unordered_map<std::string, std::vector<int>> by_domain_;  // as written: "*.x", "*" too
  struct SubnetRule {
    Subnet subnet;
    const std::vector<uint16_t>* ports;
  };
  std::vector<SubnetRule> allow_;
  std::vector<Subnet> deny_;
  mutable std::unordered_map<const TextMatch*, std::unique_ptr<RE2>> expressions_;  // once used
};

// Whether requests are looked into: then TLS is opened for some hosts, and headers may be set.
bool has_rules(const NetworkPolicy& policy);

// Names that a policy's headers and query parameters refer to as ${NAME}.
std::vector<std::string> secret_names(const NetworkPolicy& policy);

}  // namespace atl::egress
