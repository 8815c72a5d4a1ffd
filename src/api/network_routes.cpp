// What a sandbox may reach, what it has tried to, and what would happen if it did.
#include <boost/asio/steady_timer.hpp>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <map>

#include "api/network_body.h"
#include "api/routes.h"
#include "api/shapes.h"
#include "egress/explain.h"
#include "egress/policy_json.h"

namespace atl::api {
namespace {

namespace json = boost::json;

constexpr size_t kMaxBody = 4u << 20;
constexpr uint64_t kMostWaitSeconds = 60;

json::object policy_json(const sandbox::Sandbox& sandbox) {
  const NetworkPolicy& policy = sandbox.record.spec.network;
  return {{"policy", egress::to_json(policy, egress::Values::Redacted)}};
}

json::object entry_json(const NetworkEntry& entry) {
  json::object object{{"seq", entry.seq},
                      {"at", iso_time(entry.at_ms)},
                      {"decision", entry.allowed ? "allow" : "deny"},
                      {"protocol", entry.protocol},
                      {"host", entry.name},
                      {"address", entry.address},
                      {"port", entry.port},
                      {"rule", entry.rule},
                      {"reason", entry.reason},
                      {"bytesSent", entry.sent},
                      {"bytesReceived", entry.received},
                      {"durationMs", entry.duration_ms}};
  if (!entry.request.empty()) object["request"] = entry.request;
  return object;
}

Task<Result<void>> get(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  co_return co_await writer.send_json(json::serialize(policy_json(*sandbox)));
}

Task<Result<void>> put(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  const json::value* value = reader.any("policy");
  if (value == nullptr || value->is_null()) {
    co_return fail(Error(ErrorCode::InvalidArgument, "give the policy").with_field("policy"));
  }
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_ASSIGN(NetworkPolicy policy, read_policy(*value, "policy"));
  ATOLL_CO_TRY(co_await context.manager.set_network(sandbox, std::move(policy)));
  co_return co_await writer.send_json(json::serialize(policy_json(*sandbox)));
}

// With `waitSeconds` it answers as soon as there is something.
Task<Result<void>> log(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(uint64_t after, number(request, "after", 0));
  ATOLL_CO_ASSIGN(uint64_t limit, number(request, "limit", sandbox::NetworkLog::kMost));
  ATOLL_CO_ASSIGN(uint64_t wait, number(request, "waitSeconds", 0));
  sandbox::NetworkLog& entries = sandbox->network_log;
  if (after > entries.newest()) after = 0;  // counted by an earlier server
  if (wait > 0 && entries.newest() <= after) {
    auto waiting = std::make_shared<async::OneShot<bool>>();
    entries.wait(waiting);
    auto seconds = std::chrono::seconds(std::min(wait, kMostWaitSeconds));
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, seconds);
    timer.async_wait([waiting](boost::system::error_code) { waiting->set(false); });
    co_await waiting->wait();
  }
  json::array list;
  for (const NetworkEntry& entry : entries.after(after, limit)) list.push_back(entry_json(entry));
  json::object body{{"entries", std::move(list)}, {"newest", entries.newest()}};
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> explain(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(std::string url, request.query.require("url"));
  std::string method(request.query.get("method").value_or("GET"));
  ATOLL_CO_ASSIGN(egress::Explanation found,
                  egress::explain(sandbox->record.spec.network, url, method));
  json::object body{{"allowed", found.allowed},
                    {"rule", found.rule},
                    {"reason", found.reason},
                    {"treatment", found.treatment},
                    {"setsHeaders", json::array(found.sets.begin(), found.sets.end())},
                    {"removesHeaders", json::array(found.removes.begin(), found.removes.end())}};
  if (!found.forwards_to.empty()) body["forwardURL"] = found.forwards_to;
  if (found.answers_with != 0) body["statusCode"] = found.answers_with;
  co_return co_await writer.send_json(json::serialize(body));
}

// Tangle's forms of the same.
json::object egress_policy_json(const sandbox::Sandbox& sandbox) {
  const NetworkPolicy& policy = sandbox.record.spec.network;
  json::array domains;
  for (const DomainPermit& permit : policy.domains) domains.push_back(json::string(permit.domain));
  bool open = policy.mode == NetworkPolicy::Mode::AllowAll;
  bool blocked = policy.mode == NetworkPolicy::Mode::DenyAll;
  json::object value{{"mode", open ? "open" : (blocked ? "blocked" : "strict")},
                     {"allowDomains", std::move(domains)},
                     {"includeImplicitDomains", false}};
  return {{"egressPolicy", std::move(value)}, {"source", "sandbox"}};
}

Task<Result<void>> patch_egress(Context& context, http::Request& request,
                                http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  ATOLL_CO_ASSIGN(NetworkPolicy policy, egress::policy_from_tangle_egress(*object, ""));
  ATOLL_CO_TRY(co_await context.manager.set_network(sandbox, std::move(policy)));
  co_return co_await writer.send_json(json::serialize(egress_policy_json(*sandbox)));
}

Task<Result<void>> denials(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(uint64_t limit, number(request, "limit", 100));
  json::array list;
  auto entries = sandbox->network_log.after(0, sandbox::NetworkLog::kMost);
  for (auto entry = entries.rbegin(); entry != entries.rend() && list.size() < limit; entry++) {
    if (!entry->allowed) list.push_back(entry_json(*entry));
  }
  co_return co_await writer.send_json(json::serialize(json::object{{"denials", std::move(list)}}));
}

Task<Result<void>> activity(Context& context, http::Request& request,
                            http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(uint64_t limit, number(request, "limit", 100));
  std::map<std::pair<std::string, bool>, uint64_t> counts;
  auto entries = sandbox->network_log.after(0, sandbox::NetworkLog::kMost);
  for (const NetworkEntry& entry : entries) {
    counts[{entry.name.empty() ? entry.address : entry.name, entry.allowed}]++;
  }
  json::array destinations;
  for (const auto& [what, count] : counts) {
    if (destinations.size() >= limit) break;
    destinations.push_back(json::object{
        {"host", what.first}, {"action", what.second ? "allow" : "deny"}, {"count", count}});
  }
  uint64_t newest = sandbox->network_log.newest();
  bool complete = newest <= sandbox::NetworkLog::kMost;
  json::array reasons;
  if (!complete) reasons.push_back("only the latest 1000 entries are kept");
  json::object found{{"destinations", std::move(destinations)},
                     {"requestsObserved", newest},
                     {"complete", complete},
                     {"incompleteReasons", std::move(reasons)}};
  co_return co_await writer.send_json(
      json::serialize(json::object{{"activity", std::move(found)}}));
}

}  // namespace

void add_network_routes(ControlRoutes& routes) {
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/network", get);
  routes.add(Access::Write, "PUT", "/v1/sandboxes/{id}/network", put);
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/network/log", log);
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/network/explain", explain);
  routes.add(Access::Write, "PATCH", "/v1/sandboxes/{id}/egress", patch_egress);
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/egress/denials", denials);
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/egress/activity", activity);
}

}  // namespace atl::api
