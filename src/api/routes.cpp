#include "api/protocol.h"

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
  add_exposed_routes(control);
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
  add_code_routes(runtime);
  add_stream_routes(runtime);
  add_file_routes(runtime);
  add_transfer_routes(runtime);
  add_terminal_routes(runtime);
  add_git_routes(runtime);
  add_runtime_info_routes(runtime);
  add_preview_routes(runtime);
  return table;
}

namespace {

void add_routes(http::Router& router, Service& service, std::vector<Route> table,
                const Dialect& dialect) {
  for (Route& route : table) {
    router.add(
        route.method, route.pattern,
        guarded(service, {route.access, std::move(route.name), std::move(route.action)}, dialect));
  }
}

// The same routes, each told first what the request is about.
void add_addressed(http::Router& router, Service& service, Protocol protocol) {
  for (Route& route : protocol.routes) {
    auto handler = guarded(service, {route.access, std::move(route.name), std::move(route.action)},
                           protocol.dialect);
    auto addressed = [&service, handler, address = protocol.address](
                         http::Request& request, http::ResponseWriter& writer) -> Task<void> {
      address(service, request);
      return handler(request, writer);
    };
    router.add(route.method, route.pattern, addressed);
  }
}

}  // namespace

http::Router make_router(Service& service, std::vector<Protocol> further) {
  http::Router router;
  add_routes(router, service, route_table(service.settings), own_dialect());
  for (Protocol& protocol : further) {
    http::Router branch;
    http::Router& place = protocol.claims ? branch : router;
    http::Router::Claim claims = protocol.claims;
    if (claims && protocol.rest) branch.set_fallback(std::move(protocol.rest));
    if (protocol.address) {
      add_addressed(place, service, std::move(protocol));
    } else {
      add_routes(place, service, std::move(protocol.routes), protocol.dialect);
    }
    if (claims) router.add_branch(std::move(claims), std::move(branch));
  }
  add_sandbox_metrics(service);
  return router;
}

http::Router make_router(Service& service) { return make_router(service, {}); }

}  // namespace atl::api
