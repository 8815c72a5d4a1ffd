// Policies as tenants may write them: what is accepted can be written, read again as the same, and
// judged.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "egress/explain.h"
#include "egress/policy.h"
#include "egress/policy_json.h"

using namespace atl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)egress::parse_injection(text);
  auto policy = egress::parse_policy(text);
  if (!policy) return 0;
  std::string once = egress::write_policy(*policy);
  auto again = egress::parse_policy(once);
  if (!again || egress::write_policy(*again) != once) abort();
  for (std::string_view url :
       {"https://a.test/x?y=z", "http://b.a.test/", "tcp://a.test:5432", "https://10.0.0.1/"}) {
    auto explained = egress::explain(*policy, url, "GET");
    if (!explained) abort();
    if (explained->allowed && policy->mode == NetworkPolicy::Mode::DenyAll) abort();
  }
  return 0;
}
