// The route tables, one function a resource.
#pragma once

#include "api/context.h"
#include "base/unique_fd.h"

namespace atl::api {

void add_system_routes(http::Router& router, Context& context);
void add_sandbox_routes(http::Router& router, Context& context);

// Answers with an archive of what the server knows: for those who may know all of it.
using MakeBackup = std::function<Task<Result<UniqueFd>>()>;
void add_backup_route(http::Router& router, Context& context, MakeBackup make);

// Runtime routes are given relative ("/process/{pid}") and served below each base.
class RuntimeRoutes {
 public:
  RuntimeRoutes(http::Router& router, Context& context) : router_(router), context_(context) {}
  void add(std::string_view method, std::string_view pattern, Action action) {
    router_.add(method, "/v1/sandboxes/{id}/runtime" + std::string(pattern),
                guarded(context_, std::move(action)));
  }

 private:
  http::Router& router_;
  Context& context_;
};

void add_exec_routes(RuntimeRoutes& routes);
void add_process_routes(RuntimeRoutes& routes);
void add_stream_routes(RuntimeRoutes& routes);
void add_file_routes(RuntimeRoutes& routes);
void add_transfer_routes(RuntimeRoutes& routes);
void add_terminal_routes(RuntimeRoutes& routes);

http::Router make_router(Context& context);

}  // namespace atl::api
