// What sandboxes may reach.
#include <boost/json.hpp>

#include "client/client_impl.h"
#include "client/decode.h"
#include "egress/policy_json.h"
#include "http/target.h"

namespace atl {
namespace {

namespace json = boost::json;
using client::flag_of;
using client::member;
using client::number_of;
using client::parse_answer;
using client::sandbox_target;
using client::text_of;

NetworkEntry to_entry(const json::value& value) {
  NetworkEntry entry;
  entry.seq = number_of(value, "seq");
  entry.at_ms = client::parse_time_ms(text_of(value, "at"));
  entry.allowed = text_of(value, "decision") == "allow";
  entry.protocol = text_of(value, "protocol");
  entry.name = text_of(value, "host");
  entry.address = text_of(value, "address");
  entry.port = static_cast<uint16_t>(number_of(value, "port"));
  entry.rule = text_of(value, "rule");
  entry.reason = text_of(value, "reason");
  entry.request = text_of(value, "request");
  entry.sent = number_of(value, "bytesSent");
  entry.received = number_of(value, "bytesReceived");
  entry.duration_ms = static_cast<uint32_t>(number_of(value, "durationMs"));
  return entry;
}

}  // namespace

Result<std::string> Client::network_json(std::string_view sandbox) {
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->quick, "GET", sandbox_target(sandbox, "/network"), {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return json::serialize(member(value, "policy"));
}

Result<void> Client::set_network(std::string_view sandbox, const NetworkPolicy& policy) {
  json::object body{{"policy", egress::to_json(policy, egress::Values::Whole)}};
  ATOLL_TRY(
      impl_->call(impl_->quick, "PUT", sandbox_target(sandbox, "/network"), json::serialize(body)));
  return {};
}

Result<std::vector<NetworkEntry>> Client::network_log(std::string_view sandbox,
                                                      const NetworkLogRequest& request) {
  std::string target = sandbox_target(sandbox, "/network/log?after=") +
                       std::to_string(request.after) +
                       "&waitSeconds=" + std::to_string(request.wait.count());
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->patient, "GET", target, {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::list_of(member(value, "entries"), to_entry);
}

Result<NetworkExplanation> Client::explain_network(std::string_view sandbox, std::string_view url,
                                                   std::string_view method) {
  std::string target = sandbox_target(sandbox, "/network/explain?url=") +
                       http::percent_encode(url) + "&method=" + http::percent_encode(method);
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, "GET", target, {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return NetworkExplanation{.allowed = flag_of(value, "allowed"),
                            .rule = text_of(value, "rule"),
                            .reason = text_of(value, "reason"),
                            .treatment = text_of(value, "treatment"),
                            .status_code = number_of(value, "statusCode"),
                            .forward_url = text_of(value, "forwardURL"),
                            .json = answer};
}

}  // namespace atl
