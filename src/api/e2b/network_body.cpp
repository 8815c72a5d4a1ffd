#include "api/e2b/network_body.h"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

namespace atl::api::e2b {
namespace {

namespace json = boost::json;

tl::unexpected<Error> unsupported(const std::string& field) {
  return fail(
      Error(ErrorCode::NotSupported,
            "'" + field + "' is not supported by this server: its sandboxes have no network")
          .with_field(field));
}

bool says_nothing(const json::value* value) {
  return value == nullptr || value->is_null() ||
         (value->is_array() && value->get_array().empty()) ||
         (value->is_object() && value->get_object().empty());
}

}  // namespace

Result<void> read_network(http::JsonObjectReader& reader) {
  // Those who say nothing, or "yes", get what there is.
  ATOLL_TRY(reader.optional_bool("allow_internet_access"));
  ATOLL_ASSIGN(auto network, reader.optional_object("network"));
  if (!network) return {};
  for (const char* name :
       {"allowOut", "rules", "egressProxy", "maskRequestHost", "dnsServers", "httpsPorts"}) {
    if (!says_nothing(network->any(name))) return unsupported(std::string("network.") + name);
  }
  ATOLL_TRY(network->string_array("denyOut"));  // everything is denied
  ATOLL_TRY(network->optional_bool("allowPublicTraffic"));
  return network->finish();
}

}  // namespace atl::api::e2b
