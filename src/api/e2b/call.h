// One call into a sandbox, as envd's clients make it: which sandbox, as whom, and what their paths
// are relative to.
#pragma once

#include <string>
#include <string_view>

#include "api/context.h"

namespace atl::api::e2b {

struct Call {
  Target target;
  std::string user;
  std::string home;
  std::string base;  // of relative paths: the sandbox's own directory, else the user's home

  SandboxSession& session() { return *target.session; }
  // "~" is the user's home.
  std::string resolve(std::string_view path) const;
};

// The running sandbox that {id} names; one that was paused at the end of its time, and may resume
// by itself, does.
Task<Result<Call>> open_call(Context& context, http::Request& request);
// The same for what the code interpreter serves, on its own port.
Task<Result<Call>> open_interpreter_call(Context& context, http::Request& request);
// For what both serve.
Task<Result<Call>> open_any_call(Context& context, http::Request& request);

// The user in "Authorization: Basic", or ?username=; empty: none is named.
Result<std::string> named_user(const http::Request& request);
// The sixth field of a user's line in a passwd file; empty: there is none.
std::string home_in_passwd(std::string_view passwd, std::string_view user);

}  // namespace atl::api::e2b
