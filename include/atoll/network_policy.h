// What a sandbox may reach, as a plain value. src/egress reads it from JSON, writes and judges it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace atl {

struct TextMatch {
  enum class Kind : uint8_t { Exact, Prefix, Regex };
  Kind kind = Kind::Exact;
  std::string text;  // of a Regex: RE2, matched anywhere unless anchored
  bool operator==(const TextMatch&) const = default;
};

struct PairMatch {
  std::optional<TextMatch> key;
  std::optional<TextMatch> value;
  bool operator==(const PairMatch&) const = default;
};

// Which requests a rule is for; what is left out matches anything.
struct RequestMatch {
  std::optional<TextMatch> path;
  std::vector<std::string> methods;  // any of them
  std::vector<PairMatch> query;      // all of them
  std::vector<PairMatch> headers;    // all of them
  bool operator==(const RequestMatch&) const = default;
};

// A value may hold ${NAME}, which stands for a secret of the tenant.
struct Transform {
  std::map<std::string, std::optional<std::string>> headers;  // none: removed
  std::map<std::string, std::string> query;
  bool operator==(const Transform&) const = default;
};

struct CannedResponse {
  uint16_t status = 200;
  std::map<std::string, std::string> headers;
  std::string body;
  bool operator==(const CannedResponse&) const = default;
};

// A match and exactly one thing to do.
struct DomainRule {
  RequestMatch match;
  std::vector<Transform> transforms;
  std::string forward_url;
  std::optional<CannedResponse> response;
  bool operator==(const DomainRule&) const = default;
};

// 0: no limit of its own.
struct TrafficLimits {
  uint32_t connections = 0;
  uint32_t requests_per_second = 0;
  uint64_t bytes_per_second = 0;
  bool operator==(const TrafficLimits&) const = default;
};

struct DomainPermit {
  std::string domain;           // "api.example.org", "*.example.org" (not the domain itself), "*"
  std::vector<uint16_t> ports;  // empty: any where the client names the host (TLS, HTTP)
  std::vector<DomainRule> rules;
  TrafficLimits limits;
  bool operator==(const DomainPermit&) const = default;
};

struct SubnetPermit {
  std::string subnet;           // "192.0.2.0/24", "2001:db8::/32"
  std::vector<uint16_t> ports;  // empty: all
  bool operator==(const SubnetPermit&) const = default;
};

struct NetworkPolicy {
  enum class Mode : uint8_t { DenyAll, AllowAll, Rules };
  Mode mode = Mode::DenyAll;
  std::vector<DomainPermit> domains;
  std::vector<SubnetPermit> allow_subnets;  // beside the domains
  std::vector<std::string> deny_subnets;    // win over everything
  TrafficLimits limits;                     // of the whole sandbox
  bool operator==(const NetworkPolicy&) const = default;
};

}  // namespace atl
