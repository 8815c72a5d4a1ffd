// What envd says about itself and its sandbox.
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/call.h"
#include "api/e2b/routes.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;

Task<Result<void>> health(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_TRY(co_await open_any_call(context, request));
  co_return co_await writer.send(http::Response::empty());
}

Task<Result<void>> metrics(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  auto handle = call.target.sandbox->handle;
  if (handle == nullptr) co_return fail(ErrorCode::InvalidState, "the sandbox does not run");
  ATOLL_CO_ASSIGN(HostUsage used, co_await handle->usage());
  const Limits& limits = call.target.sandbox->record.spec.limits;
  json::object body{{"ts", sandbox::wall_clock_ms() / 1000},
                    {"cpu_count", std::max<uint32_t>(1, (limits.cpu_millis + 999) / 1000)},
                    {"mem_used", used.memory_bytes},
                    {"mem_total", limits.memory_bytes},
                    {"mem_cache", used.cache_bytes},
                    {"disk_used", used.disk_bytes},
                    {"disk_total", limits.disk_bytes}};
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> variables(Context& context, http::Request& request,
                             http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  json::object body;
  for (const auto& [name, value] : call.target.sandbox->record.spec.env) body[name] = value;
  co_return co_await writer.send_json(json::serialize(body));
}

}  // namespace

void add_daemon_routes(ControlRoutes& routes) {
  routes.add(Access::RuntimeRead, "GET", "/health", health);
  routes.add(Access::RuntimeRead, "GET", "/metrics", metrics);
  routes.add(Access::RuntimeRead, "GET", "/envs", variables);
}

}  // namespace atl::api::e2b
