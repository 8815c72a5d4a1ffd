#include "api/routes.h"

namespace atl::api {

http::Router make_router(Service& service) {
  http::Router router;
  ControlRoutes control(router, service);
  add_system_routes(control);
  add_sandbox_routes(control);
  add_key_routes(control);
  add_secret_routes(control);
  add_token_routes(control);
  add_event_routes(control);
  add_usage_routes(control);
  add_backup_route(control);
  add_metrics_routes(control, service);
  add_sandbox_metrics(service);
  RuntimeRoutes runtime(router, service);
  add_exec_routes(runtime);
  add_process_routes(runtime);
  add_stream_routes(runtime);
  add_file_routes(runtime);
  add_transfer_routes(runtime);
  add_terminal_routes(runtime);
  add_git_routes(runtime);
  add_runtime_info_routes(runtime);
  return router;
}

}  // namespace atl::api
