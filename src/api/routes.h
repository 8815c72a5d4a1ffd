// The route tables, one function a resource.
#pragma once

#include "api/context.h"
#include "base/unique_fd.h"

namespace atl::api {

// One entry of the table that the router is made from, and that docs/api/openapi.yaml describes.
struct Route {
  Access access = Access::Admin;
  std::string method;
  std::string pattern;
  std::string name;  // in the audit log
  Action action;
};

// Routes of the control API, as they are.
class ControlRoutes {
 public:
  explicit ControlRoutes(std::vector<Route>& table) : table_(table) {}
  void add(Access access, std::string_view method, std::string_view pattern, Action action) {
    table_.push_back({.access = access,
                      .method = std::string(method),
                      .pattern = std::string(pattern),
                      .name = std::string(method) + " " + std::string(pattern),
                      .action = std::move(action)});
  }

 private:
  std::vector<Route>& table_;
};

// Runtime routes are given relative ("/process/{pid}") and served below each base.
class RuntimeRoutes {
 public:
  static constexpr std::string_view kBases[] = {
      "/v1/sandboxes/{id}/runtime",  // with an API key
      "/v1/sidecar-proxy/{id}",      // with a scoped token
      "/runtime/{id}",               // connection.runtimeUrl, with its bearer
  };
  explicit RuntimeRoutes(std::vector<Route>& table) : table_(table) {}
  void add(Access access, std::string_view method, std::string_view pattern, const Action& action) {
    for (std::string_view base : kBases) {
      table_.push_back({.access = access,
                        .method = std::string(method),
                        .pattern = std::string(base) + std::string(pattern),
                        .name = std::string(method) + " " + std::string(pattern),
                        .action = action});
    }
  }

 private:
  std::vector<Route>& table_;
};

void add_system_routes(ControlRoutes& routes);
void add_template_routes(ControlRoutes& routes);
void add_template_build_routes(ControlRoutes& routes);
void add_archive_routes(ControlRoutes& routes);
void add_sandbox_routes(ControlRoutes& routes);
void add_state_routes(ControlRoutes& routes);
void add_checkpoint_routes(ControlRoutes& routes);
void add_network_routes(ControlRoutes& routes);
void add_exposed_routes(ControlRoutes& routes);
void add_key_routes(ControlRoutes& routes);
void add_secret_routes(ControlRoutes& routes);
void add_token_routes(ControlRoutes& routes);
void add_event_routes(ControlRoutes& routes);
void add_usage_routes(ControlRoutes& routes);
// Answers with an archive of what the server knows: for those who may know all of it.
void add_backup_route(ControlRoutes& routes);
void add_metrics_routes(ControlRoutes& routes, const ServiceSettings& settings);
// The description of all of them, for programs.
void add_openapi_route(ControlRoutes& routes);
std::string_view openapi_json();
void add_sandbox_metrics(Service& service);

void add_exec_routes(RuntimeRoutes& routes);
void add_process_routes(RuntimeRoutes& routes);
void add_code_routes(RuntimeRoutes& routes);
void add_stream_routes(RuntimeRoutes& routes);
void add_file_routes(RuntimeRoutes& routes);
void add_transfer_routes(RuntimeRoutes& routes);
void add_terminal_routes(RuntimeRoutes& routes);
void add_git_routes(RuntimeRoutes& routes);
void add_runtime_info_routes(RuntimeRoutes& routes);
void add_preview_routes(RuntimeRoutes& routes);

std::vector<Route> route_table(const ServiceSettings& settings);
http::Router make_router(Service& service);

}  // namespace atl::api
