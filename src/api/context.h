// What every handler needs, and the shape of a handler: it returns an error or has answered.
#pragma once

#include <functional>
#include <string>

#include "http/json.h"
#include "http/message.h"
#include "http/response_writer.h"
#include "http/router.h"
#include "sandbox/manager.h"

namespace atl::api {

struct Context {
  sandbox::Manager& manager;
  std::string api_key;   // for connections that are not local
  std::string base_url;  // of the loopback port; empty without one
  std::string templates_dir;
  std::string version;
};

using Action = std::function<Task<Result<void>>(Context&, http::Request&, http::ResponseWriter&)>;

// Checks who is asking, runs the action, and turns its error into the answer.
http::Handler guarded(Context& context, Action action);
http::Handler open_to_all(Context& context, Action action);

// The body as a JSON object, refused where it is anything else. An empty body is an empty object.
Task<Result<http::JsonDocument>> read_json(http::Request& request, size_t limit = 16u << 20);

// A sandbox in use by one request: it counts as active until this goes.
class Target {
 public:
  Target(sandbox::SandboxPtr used, std::shared_ptr<SandboxSession> live)
      : sandbox(std::move(used)), session(std::move(live)) {
    sandbox->in_use++;
  }
  Target(Target&&) = default;
  Target& operator=(Target&&) = delete;
  ~Target() {
    if (sandbox == nullptr) return;  // moved from
    sandbox->in_use--;
    sandbox->last_activity_ms = sandbox::wall_clock_ms();
  }

  sandbox::SandboxPtr sandbox;
  std::shared_ptr<SandboxSession> session;
};
// The sandbox that {id} names; the second also needs it to run.
Result<sandbox::SandboxPtr> find_sandbox(Context& context, const http::Request& request);
Result<Target> find_running(Context& context, const http::Request& request);

Result<int32_t> pid_of(const http::Request& request);
// A query parameter that must be a whole number where it is given.
Result<uint64_t> number(const http::Request& request, std::string_view name, uint64_t fallback);

}  // namespace atl::api
