// The route tables of E2B's two halves, one function a resource.
#pragma once

#include "api/routes.h"

namespace atl::api::e2b {

// The control API.
void add_sandboxes(ControlRoutes& routes);
void add_states(ControlRoutes& routes);
void add_metrics(ControlRoutes& routes);
void add_logs(ControlRoutes& routes);
void add_templates(ControlRoutes& routes);
void add_builds(ControlRoutes& routes);

// What a sandbox's daemon serves; {id} is set before.
void add_process_calls(ControlRoutes& routes);
void add_file_calls(ControlRoutes& routes);
void add_watch_calls(ControlRoutes& routes);
void add_file_transfers(ControlRoutes& routes);
void add_daemon_routes(ControlRoutes& routes);
// And on another port, its code interpreter.
void add_code_calls(ControlRoutes& routes);

}  // namespace atl::api::e2b
