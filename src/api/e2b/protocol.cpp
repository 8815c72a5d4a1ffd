#include "api/e2b/protocol.h"

#include "api/e2b/credentials.h"
#include "api/e2b/errors.h"
#include "api/e2b/routes.h"

namespace atl::api::e2b {

std::vector<Protocol> protocols() {
  Protocol control{.dialect = {authenticate_control, control_error}, .routes = {}};
  ControlRoutes routes(control.routes);
  add_sandboxes(routes);
  add_states(routes);
  add_metrics(routes);
  add_logs(routes);
  add_templates(routes);
  add_builds(routes);

  Protocol daemon{.dialect = {authenticate_sandbox, sandbox_error},
                  .routes = {},
                  .claims = names_sandbox,
                  .address = address_sandbox};
  ControlRoutes calls(daemon.routes);
  add_process_calls(calls);
  add_file_calls(calls);
  add_watch_calls(calls);
  add_file_transfers(calls);
  add_daemon_routes(calls);
  add_code_calls(calls);

  std::vector<Protocol> both;
  both.push_back(std::move(control));
  both.push_back(std::move(daemon));
  return both;
}

std::string client_environment(const std::string& base_url, const std::string& api_key) {
  return "E2B_API_URL=" + base_url + "\nE2B_SANDBOX_URL=" + base_url +
         "\nE2B_API_KEY=" + wrap_key(api_key) + "\n";
}

}  // namespace atl::api::e2b
