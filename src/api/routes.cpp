#include "api/routes.h"

namespace atl::api {

http::Router make_router(Context& context) {
  http::Router router;
  add_system_routes(router, context);
  add_sandbox_routes(router, context);
  RuntimeRoutes runtime(router, context);
  add_exec_routes(runtime);
  add_process_routes(runtime);
  add_stream_routes(runtime);
  add_file_routes(runtime);
  add_transfer_routes(runtime);
  add_terminal_routes(runtime);
  return router;
}

}  // namespace atl::api
