// How much a sandbox uses, from its control groups.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/routes.h"
#include "api/shapes.h"
#include "base/iso_time.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;

// What was used since the run began, as a share of the time that it has lasted.
double cpu_percent(const sandbox::Record& record, uint64_t cpu_us) {
  int64_t lasted_ms = std::max<int64_t>(1, sandbox::BootTime::now().ms - record.since.ms);
  return static_cast<double>(cpu_us) / 10.0 / static_cast<double>(lasted_ms);
}

json::object point(const sandbox::Record& record, const Usage& used) {
  int64_t now = sandbox::wall_clock_ms();
  const Limits& limits = record.spec.limits;
  return {{"timestamp", iso_time(now)},
          {"timestampUnix", now / 1000},
          {"cpuCount", std::max<uint32_t>(1, (limits.cpu_millis + 999) / 1000)},
          {"cpuUsedPct", plain_number(cpu_percent(record, used.cpu_us))},
          {"memUsed", used.memory_bytes},
          {"memTotal", limits.memory_bytes},
          {"memCache", 0},
          {"diskUsed", 0},
          {"diskTotal", limits.disk_bytes}};
}

Task<Result<void>> of_sandbox(Context& context, http::Request& request,
                              http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  json::array points;
  if (auto handle = sandbox->handle) {
    ATOLL_CO_ASSIGN(Usage used, co_await handle->usage());
    points.push_back(point(sandbox->record, used));
  }
  co_return co_await writer.send_json(json::serialize(points));
}

Task<Result<void>> of_several(Context& context, http::Request& request,
                              http::ResponseWriter& writer) {
  json::object by_id;
  for (std::string_view given : request.query.all("sandbox_ids")) {
    for (std::string_view id : http::split_list(given)) {
      auto sandbox = context.manager.index().find(context.who.caller, std::string(id));
      if (sandbox == nullptr || sandbox->handle == nullptr) continue;
      ATOLL_CO_ASSIGN(Usage used, co_await sandbox->handle->usage());
      by_id[sandbox->record.id] = point(sandbox->record, used);
    }
  }
  co_return co_await writer.send_json(
      json::serialize(json::object{{"sandboxes", std::move(by_id)}}));
}

}  // namespace

void add_metrics(ControlRoutes& routes) {
  routes.add(Access::Read, "GET", "/sandboxes/{id}/metrics", of_sandbox);
  routes.add(Access::Read, "GET", "/sandboxes/metrics", of_several);
}

}  // namespace atl::api::e2b
