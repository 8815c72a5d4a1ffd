// How much sandboxes use, from their control groups and their share of the disk.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/routes.h"
#include "api/e2b/samples.h"
#include "api/shapes.h"
#include "base/iso_time.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;

json::object point(const sandbox::Record& record, const Sample& sample) {
  const Limits& limits = record.spec.limits;
  return {{"timestamp", iso_time(sample.at_ms)},
          {"timestampUnix", sample.at_ms / 1000},
          {"cpuCount", std::max<uint32_t>(1, (limits.cpu_millis + 999) / 1000)},
          {"cpuUsedPct", plain_number(sample.cpu_percent)},
          {"memUsed", sample.used.memory_bytes},
          {"memTotal", limits.memory_bytes},
          {"memCache", sample.used.cache_bytes},
          {"diskUsed", sample.used.disk_bytes},
          {"diskTotal", limits.disk_bytes}};
}

// All that is known of the range that is asked for; without one, how it is now.
Task<Result<void>> of_sandbox(Samples& samples, Context& context, http::Request& request,
                              http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(uint64_t start, number(request, "start", 0));
  ATOLL_CO_ASSIGN(uint64_t end, number(request, "end", INT64_MAX));
  bool ranged = request.query.get("start") || request.query.get("end");
  ATOLL_CO_ASSIGN(auto known, co_await samples.of(context, sandbox));
  if (!ranged && known.size() > 1) known.erase(known.begin(), known.end() - 1);
  json::array points;
  for (const Sample& sample : known) {
    auto second = static_cast<uint64_t>(sample.at_ms / 1000);
    if (second >= start && second <= end) points.push_back(point(sandbox->record, sample));
  }
  co_return co_await writer.send_json(json::serialize(points));
}

Task<Result<void>> of_several(Samples& samples, Context& context, http::Request& request,
                              http::ResponseWriter& writer) {
  json::object by_id;
  for (std::string_view given : request.query.all("sandbox_ids")) {
    for (std::string_view id : http::split_list(given)) {
      auto sandbox = context.manager.index().find(context.who.caller, std::string(id));
      if (sandbox == nullptr) continue;
      ATOLL_CO_ASSIGN(auto known, co_await samples.of(context, sandbox));
      if (!known.empty()) by_id[sandbox->record.id] = point(sandbox->record, known.back());
    }
  }
  co_return co_await writer.send_json(
      json::serialize(json::object{{"sandboxes", std::move(by_id)}}));
}

}  // namespace

void add_metrics(ControlRoutes& routes) {
  using Handler = Task<Result<void>> (*)(Samples&, Context&, http::Request&, http::ResponseWriter&);
  auto samples = std::make_shared<Samples>();
  auto with = [samples](Handler handler) -> Action {
    return
        [samples, handler](Context& context, http::Request& request, http::ResponseWriter& writer) {
          return handler(*samples, context, request, writer);
        };
  };
  routes.add(Access::Read, "GET", "/sandboxes/{id}/metrics", with(of_sandbox));
  routes.add(Access::Read, "GET", "/sandboxes/metrics", with(of_several));
}

}  // namespace atl::api::e2b
