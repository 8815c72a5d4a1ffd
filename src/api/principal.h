// Who is asking.
#pragma once

#include <string>

#include "auth/api_key.h"
#include "http/message.h"
#include "sandbox/sandbox.h"

namespace atl::api {

struct Service;

struct Principal {
  enum class Kind : uint8_t {
    Nobody,
    Local,    // the Unix socket, whose permissions say who may connect
    Key,      // an API key
    Scoped,   // a short-lived token for a part of one sandbox
    Runtime,  // the bearer in a sandbox's `connection`: all of that one's runtime
  };
  Kind kind = Kind::Nobody;
  std::string actor = "nobody";  // as the audit log names it
  auth::Role role = auth::Role::ReadOnly;
  sandbox::Caller caller;
  std::shared_ptr<const auth::ApiKey> key;

  // Of tokens: the only sandbox they are good for, and for what of it.
  std::string sandbox_id;
  std::string scope;
  std::string session_id;

  bool is_admin() const { return role == auth::Role::Admin && sandbox_id.empty(); }
};

// A request without credentials comes back as Nobody where it came over TCP. Wrong credentials
// fail.
Result<Principal> authenticate(Service& service, const http::Request& request);
// The parts of it that other protocols use: from a key's text, and for who may use one sandbox.
Result<Principal> key_principal(Service& service, std::string_view key);
Principal runtime_principal(const sandbox::Record& record);
// The tenant that an administrator acts for, where the request names one.
Result<void> apply_tenant(const http::Request& request, Principal& who);

}  // namespace atl::api
