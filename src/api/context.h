// What every handler needs, and the shape of a handler: it returns an error or has answered.
#pragma once

#include <functional>
#include <string>

#include "api/access.h"
#include "api/service.h"
#include "http/json.h"
#include "http/message.h"
#include "http/response_writer.h"
#include "http/router.h"

namespace atl::api {

// One request's surroundings.
struct Context {
  Service& service;
  sandbox::Manager& manager;
  const Principal& who;
  std::string made = {};  // the id of what the request brought about, for the audit log
};

using Action = std::function<Task<Result<void>>(Context&, http::Request&, http::ResponseWriter&)>;

// How requests say who asks, and what an error looks like.
struct Dialect {
  Result<Principal> (*authenticate)(Service&, const http::Request&);
  http::Response (*refuse)(const http::Request&, const Error&);
};
Dialect own_dialect();

struct Guarded {
  Access access;
  std::string name;  // in the audit log
  Action action;
};
// Checks who is asking and whether they may, notes it in the audit log, runs the action, and turns
// its error into the answer.
http::Handler guarded(Service& service, Guarded what, const Dialect& dialect);

// The body as a JSON object, refused where it is anything else. An empty body is an empty object.
Task<Result<http::JsonDocument>> read_json(http::Request& request, size_t limit = 16u << 20);

// A sandbox in use by one request: it counts as active until this goes.
class Target {
 public:
  Target(sandbox::Manager& manager, sandbox::SandboxPtr used, std::shared_ptr<SandboxSession> live)
      : sandbox(std::move(used)), session(std::move(live)), manager_(&manager) {
    sandbox->in_use++;
  }
  Target(Target&&) = default;
  Target& operator=(Target&&) = delete;
  ~Target() {
    if (sandbox == nullptr) return;  // moved from
    sandbox->in_use--;
    manager_->note_activity(*sandbox);
  }

  sandbox::SandboxPtr sandbox;
  std::shared_ptr<SandboxSession> session;

 private:
  sandbox::Manager* manager_;
};
// The sandbox that {id} names; the second also needs it to run.
Result<sandbox::SandboxPtr> find_sandbox(Context& context, const http::Request& request);
Task<Result<Target>> find_running(Context& context, const http::Request& request);

// Where the sandbox has a history: the state before this command.
Task<Result<void>> keep_point(Context& context, const Target& target, const RunOptions& command);

Result<int32_t> pid_of(const http::Request& request);
// A query parameter that must be a whole number where it is given.
Result<uint64_t> number(const http::Request& request, std::string_view name, uint64_t fallback);

}  // namespace atl::api
