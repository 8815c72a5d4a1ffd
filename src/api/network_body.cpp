#include "api/network_body.h"

#include <boost/json/object.hpp>

#include "egress/policy_json.h"

namespace atl::api {

namespace json = boost::json;

Result<NetworkPolicy> read_policy(const json::value& value, const std::string& field) {
  bool tangle = value.is_object() && (value.get_object().contains("blockOutbound") ||
                                      value.get_object().contains("allowList"));
  if (tangle) return egress::policy_from_tangle_network(value.get_object(), field);
  return egress::policy_from(value, field);
}

Result<bool> read_network(http::JsonObjectReader& reader, sandbox::Spec& spec) {
  std::string given;
  for (std::string name : {"network", "networkPolicy", "egressPolicy"}) {
    const json::value* value = reader.any(name);
    if (value == nullptr || value->is_null()) continue;
    if (!given.empty()) {
      return fail(Error(ErrorCode::InvalidArgument, "give either " + given + " or " + name)
                      .with_field(name));
    }
    given = name;
    bool egress_form = name == "egressPolicy";
    if (egress_form && !value->is_object()) {
      return fail(Error(ErrorCode::InvalidArgument, "an object with mode").with_field(name));
    }
    auto policy = egress_form ? egress::policy_from_tangle_egress(value->get_object(), name)
                              : read_policy(*value, name);
    if (!policy) return fail(std::move(policy).error());
    spec.network = std::move(*policy);
  }
  return !given.empty();
}

}  // namespace atl::api
