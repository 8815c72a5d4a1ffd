#include "api/routes.h"

namespace atl::api {

std::vector<Route> route_table(const ServiceSettings& settings) {
  std::vector<Route> table;
  ControlRoutes control(table);
  add_system_routes(control);
  add_template_routes(control);
  add_template_build_routes(control);
  add_archive_routes(control);
  add_sandbox_routes(control);
  add_state_routes(control);
  add_checkpoint_routes(control);
  add_network_routes(control);
  add_key_routes(control);
  add_secret_routes(control);
  add_token_routes(control);
  add_event_routes(control);
  add_usage_routes(control);
  add_backup_route(control);
  add_metrics_routes(control, settings);
  add_openapi_route(control);
  RuntimeRoutes runtime(table);
  add_exec_routes(runtime);
  add_process_routes(runtime);
  add_stream_routes(runtime);
  add_file_routes(runtime);
  add_transfer_routes(runtime);
  add_terminal_routes(runtime);
  add_git_routes(runtime);
  add_runtime_info_routes(runtime);
  return table;
}

http::Router make_router(Service& service) {
  http::Router router;
  for (Route& route : route_table(service.settings)) {
    router.add(route.method, route.pattern,
               guarded(service, route.access, std::move(route.name), std::move(route.action)));
  }
  add_sandbox_metrics(service);
  return router;
}

}  // namespace atl::api
