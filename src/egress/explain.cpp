#include "egress/explain.h"

#include <charconv>

#include "egress/name.h"
#include "egress/policy.h"

namespace atl::egress {
namespace {

struct Url {
  std::string scheme = "https";
  std::string host;
  uint16_t port = 0;
  std::string target = "/";
};

Result<Url> parse_url(std::string_view text) {
  auto refuse = [] {
    return fail(Error(ErrorCode::InvalidArgument,
                      "write it as https://HOST/PATH, http://HOST/PATH or tcp://HOST:PORT")
                    .with_field("url"));
  };
  Url url;
  if (size_t at = text.find("://"); at != text.npos) {
    url.scheme = text.substr(0, at);
    text.remove_prefix(at + 3);
  }
  if (url.scheme != "https" && url.scheme != "http" && url.scheme != "tcp") return refuse();
  size_t slash = std::min(text.find_first_of("/?"), text.size());
  std::string_view authority = text.substr(0, slash);
  if (slash < text.size()) url.target = text.substr(slash);
  if (url.target.starts_with('?')) url.target = "/" + url.target;
  url.port = url.scheme == "https" ? 443 : (url.scheme == "http" ? 80 : 0);
  bool bracketed = authority.starts_with('[');
  size_t colon = bracketed ? authority.find("]:") : authority.rfind(':');
  if (bracketed && colon != authority.npos) colon++;
  if (colon != authority.npos) {
    std::string_view digits = authority.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), url.port);
    if (error != std::errc() || end != digits.data() + digits.size()) return refuse();
  }
  url.host = authority.substr(0, colon);
  if (bracketed) url.host = url.host.substr(1, url.host.find(']') - 1);
  if (url.host.empty() || url.port == 0) return refuse();
  return url;
}

void describe_plan(const Policy& policy, int permit, const Url& url, std::string_view method,
                   Explanation& out) {
  auto split = http::split_target(url.target);
  if (!split) return;
  auto query = http::Query::parse(split->query);
  http::Headers headers;
  if (!query) return;
  RequestView view{.method = method, .path = split->path, .query = *query, .headers = headers};
  RequestPlan plan = policy.plan(permit, view, url.scheme == "https");
  for (const auto& [name, value] : plan.headers) (value ? out.sets : out.removes).push_back(name);
  if (plan.forward_url != nullptr) out.forwards_to = *plan.forward_url;
  if (plan.response != nullptr) out.answers_with = plan.response->status;
  if (plan.withheld) out.reason = "a rule sets headers, but only over TLS";
}

}  // namespace

Result<Explanation> explain(const NetworkPolicy& value, std::string_view text,
                            std::string_view method) {
  ATOLL_ASSIGN(Url url, parse_url(text));
  SecretValues stand_ins;  // a real value is of no interest here
  for (const std::string& name : secret_names(value)) stand_ins[name] = "x";
  Policy policy(value, std::move(stand_ins));
  Explanation out;
  auto take = [&](const Verdict& verdict) {
    out.allowed = verdict.allowed;
    out.rule = verdict.rule;
    out.reason = verdict.reason;
  };
  if (auto address = IpAddress::parse(url.host)) {
    AddressGuard guard;
    take(policy.judge(*address, url.port));
    if (auto why = guard.refuses(*address)) {
      out.allowed = false;
      out.reason = *why + "; only the operator can open it (egress_allow_private)";
    }
    out.treatment = out.allowed ? "passed through" : "refused at once";
    return out;
  }
  auto name = canonical_name(url.host);
  if (!name) {
    return fail(
        Error(ErrorCode::InvalidArgument, "'" + url.host + "' is not a host").with_field("url"));
  }
  Protocol protocol = url.scheme == "https"  ? Protocol::Tls
                      : url.scheme == "http" ? Protocol::Http
                                             : Protocol::Opaque;
  Verdict verdict = policy.judge(*name, url.port, protocol);
  take(verdict);
  if (!verdict.allowed) {
    out.treatment = protocol == Protocol::Http ? "answered with 403" : "refused at once";
    return out;
  }
  bool opened = protocol == Protocol::Tls && policy.intercepts(verdict.permit);
  out.treatment = opened                       ? "TLS is opened, because a rule is for requests"
                  : protocol == Protocol::Http ? "relayed request by request"
                                               : "passed through";
  if (protocol != Protocol::Opaque) describe_plan(policy, verdict.permit, url, method, out);
  return out;
}

}  // namespace atl::egress
