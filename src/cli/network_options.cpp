#include "cli/network_options.h"

#include <fstream>
#include <iostream>
#include <iterator>

#include "egress/policy_json.h"

namespace atl::cli {

Result<NetworkPolicy> read_policy_file(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path);
    if (!file) return fail_errno("open", path);
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto policy = egress::parse_policy(text);
  if (policy) return policy;
  std::string where = policy.error().field();
  std::string message =
      where.empty() ? policy.error().message() : where + ": " + policy.error().message();
  return fail(ErrorCode::InvalidArgument, path + ": " + message);
}

Result<std::optional<NetworkPolicy>> NetworkFlags::policy() const {
  bool any = !mode.empty() || !file.empty() || !allow.empty() || !deny.empty() || !inject.empty();
  if (!any) return std::nullopt;
  NetworkPolicy made;
  if (!file.empty()) {
    if (!mode.empty()) {
      return fail(ErrorCode::InvalidArgument, "give either --net or --net-policy");
    }
    ATOLL_ASSIGN(made, read_policy_file(file));
  }
  if (mode == "allow-all") made.mode = NetworkPolicy::Mode::AllowAll;
  bool rules = !allow.empty() || !inject.empty();
  if (rules && mode == "deny-all") {
    return fail(ErrorCode::InvalidArgument, "--net deny-all leaves nothing to allow");
  }
  if (rules && mode == "allow-all") {
    // Everything by name, so that the rules for some names are not passed by.
    made.mode = NetworkPolicy::Mode::Rules;
    made.domains.push_back({.domain = "*", .ports = {}, .rules = {}, .limits = {}});
  }
  for (const std::string& one : allow) ATOLL_TRY(egress::allow(made, one));
  for (const std::string& one : inject) {
    ATOLL_ASSIGN(DomainPermit permit, egress::parse_injection(one));
    egress::add_permit(made, std::move(permit));
  }
  for (const std::string& one : deny) ATOLL_TRY(egress::deny(made, one));
  return made;
}

std::vector<Option> network_flags(NetworkFlags& flags) {
  return {
      {"--net",
       "MODE",
       "deny-all (default), or allow-all: every public address",
       &flags.mode,
       {"deny-all", "allow-all"}},
      {"--allow", "HOST", "a domain, *.domain, host:port or subnet it may reach (repeatable)",
       &flags.allow},
      {"--deny", "SUBNET", "addresses it may not reach, whatever allows them (repeatable)",
       &flags.deny},
      {"--inject", "HOST: HEADER: VALUE",
       "set this header on requests to the host; ${NAME} is a secret (repeatable)", &flags.inject},
      {"--net-policy", "FILE", "the whole policy as JSON", &flags.file, {}, Complete::File}};
}

}  // namespace atl::cli
