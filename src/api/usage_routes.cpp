// Metered usage: of one sandbox, and of each key.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/routes.h"
#include "api/shapes.h"

namespace atl::api {
namespace {

namespace json = boost::json;
using sandbox::Metered;

void add_metered(json::object& object, const Metered& metered) {
  object["cpuSeconds"] = plain_number(static_cast<double>(metered.cpu_us) / 1e6);
  object["runningSeconds"] = plain_number(static_cast<double>(metered.running_ms) / 1e3);
  object["memoryGBSeconds"] = plain_number(static_cast<double>(metered.memory_mb_ms) / 1024 / 1e3);
}

void sum(Metered& total, const Metered& part) {
  total.cpu_us += part.cpu_us;
  total.running_ms += part.running_ms;
  total.memory_mb_ms += part.memory_mb_ms;
}

Task<Result<void>> of_sandbox(Context& context, http::Request& request,
                              http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  json::object body{{"sandboxId", sandbox->record.id}};
  add_metered(body, co_await context.manager.metered(sandbox));
  if (auto handle = sandbox->handle) {
    ATOLL_CO_ASSIGN(Usage used, co_await handle->usage());
    body["memoryBytes"] = used.memory_bytes;
    body["memoryPeakBytes"] = used.memory_peak_bytes;
    body["cpuMicroseconds"] = used.cpu_us;
    body["processes"] = used.pids;
    body["oomKills"] = used.oom_kills;
  }
  co_return co_await writer.send_json(json::serialize(body));
}

struct Sum {
  Metered metered;
  uint64_t active = 0;
  uint64_t sandboxes = 0;
};
using Sums = std::map<std::pair<std::string, std::string>, Sum>;  // tenant, key id

Task<Sums> sums_for(Context& context) {
  const sandbox::Caller& caller = context.who.caller;
  Sums sums;
  for (const auto& total : context.manager.ledger().totals()) {
    if (!caller.all_tenants && total.owner.tenant != caller.owner.tenant) continue;
    Sum& one = sums[{total.owner.tenant, total.owner.key_id}];
    sum(one.metered, total.metered);
    one.sandboxes += total.sandboxes;
  }
  for (const auto& sandbox : context.manager.list(caller)) {
    const sandbox::Owner& owner = sandbox->record.owner;
    Metered metered = co_await context.manager.metered(sandbox);
    Sum& one = sums[{owner.tenant, owner.key_id}];
    sum(one.metered, metered);
    one.sandboxes++;
    if (sandbox->handle != nullptr) one.active++;
  }
  co_return sums;
}

// The flat numbers that the SDKs read, and what they are made of.
Task<Result<void>> of_caller(Context& context, http::Request&, http::ResponseWriter& writer) {
  Sums sums = co_await sums_for(context);
  Sum total;
  json::array keys;
  for (const auto& [owner, one] : sums) {
    sum(total.metered, one.metered);
    total.active += one.active;
    total.sandboxes += one.sandboxes;
    json::object key{
        {"tenant", owner.first},
        {"keyId", owner.second.empty() ? json::value(nullptr) : json::value(owner.second)},
        {"activeSandboxes", one.active},
        {"totalSandboxes", one.sandboxes}};
    add_metered(key, one.metered);
    keys.push_back(std::move(key));
  }
  json::object body{
      {"computeMinutes", plain_number(static_cast<double>(total.metered.running_ms) / 60e3)},
      {"activeSandboxes", total.active},
      {"totalSandboxes", total.sandboxes},
      {"keys", std::move(keys)}};
  add_metered(body, total.metered);
  co_return co_await writer.send_json(json::serialize(body));
}

}  // namespace

void add_usage_routes(ControlRoutes& routes) {
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/usage", of_sandbox);
  routes.add(Access::Read, "GET", "/v1/usage", of_caller);
  routes.add(Access::Read, "GET", "/usage", of_caller);
}

}  // namespace atl::api
