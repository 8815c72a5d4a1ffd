// The route tables, one function a resource.
#pragma once

#include "api/context.h"
#include "base/unique_fd.h"

namespace atl::api {

// Routes of the control API, as they are.
class ControlRoutes {
 public:
  ControlRoutes(http::Router& router, Service& service) : router_(router), service_(service) {}
  void add(Access access, std::string_view method, std::string_view pattern, Action action) {
    std::string name = std::string(method) + " " + std::string(pattern);
    router_.add(method, pattern, guarded(service_, access, std::move(name), std::move(action)));
  }

 private:
  http::Router& router_;
  Service& service_;
};

// Runtime routes are given relative ("/process/{pid}") and served below each base.
class RuntimeRoutes {
 public:
  static constexpr std::string_view kBases[] = {
      "/v1/sandboxes/{id}/runtime",  // with an API key
      "/v1/sidecar-proxy/{id}",      // with a scoped token
      "/runtime/{id}",               // connection.runtimeUrl, with its bearer
  };
  RuntimeRoutes(http::Router& router, Service& service) : router_(router), service_(service) {}
  void add(Access access, std::string_view method, std::string_view pattern, const Action& action) {
    std::string name = std::string(method) + " " + std::string(pattern);
    for (std::string_view base : kBases) {
      router_.add(method, std::string(base) + std::string(pattern),
                  guarded(service_, access, name, action));
    }
  }

 private:
  http::Router& router_;
  Service& service_;
};

void add_system_routes(ControlRoutes& routes);
void add_sandbox_routes(ControlRoutes& routes);
void add_key_routes(ControlRoutes& routes);
void add_secret_routes(ControlRoutes& routes);
void add_token_routes(ControlRoutes& routes);
void add_event_routes(ControlRoutes& routes);
void add_usage_routes(ControlRoutes& routes);
// Answers with an archive of what the server knows: for those who may know all of it.
void add_backup_route(ControlRoutes& routes);
void add_metrics_routes(ControlRoutes& routes, const Service& service);
void add_sandbox_metrics(Service& service);

void add_exec_routes(RuntimeRoutes& routes);
void add_process_routes(RuntimeRoutes& routes);
void add_stream_routes(RuntimeRoutes& routes);
void add_file_routes(RuntimeRoutes& routes);
void add_transfer_routes(RuntimeRoutes& routes);
void add_terminal_routes(RuntimeRoutes& routes);
void add_git_routes(RuntimeRoutes& routes);
void add_runtime_info_routes(RuntimeRoutes& routes);

http::Router make_router(Service& service);

}  // namespace atl::api
