// What a policy would do with a request, and why.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atoll/network_policy.h"
#include "base/result.h"

namespace atl::egress {

struct Explanation {
  bool allowed = false;
  std::string rule;
  std::string reason;
  std::string treatment;  // "passed through", "opened, because a rule wants to see requests", ...
  std::vector<std::string> sets;     // headers
  std::vector<std::string> removes;  // headers
  std::string forwards_to;
  int answers_with = 0;  // a status that comes from the policy
};

// `url` is http://, https:// or tcp://HOST:PORT; a host alone is https.
Result<Explanation> explain(const NetworkPolicy& policy, std::string_view url,
                            std::string_view method);

}  // namespace atl::egress
