// Who asks, as E2B's clients say it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/principal.h"

namespace atl::api::e2b {

// An API key in the form that E2B's clients insist on: "e2b_" and hexadecimal digits.
std::string wrap_key(std::string_view key);
std::optional<std::string> unwrap_key(std::string_view text);

// X-API-Key with a wrapped key, or whatever /v1 takes.
Result<Principal> authenticate_control(Service& service, const http::Request& request);
// X-Access-Token, or a signature in the query. A wrong one and a sandbox that is gone fail alike.
Result<Principal> authenticate_sandbox(Service& service, const http::Request& request);

struct SignedPath {
  std::string_view path;
  std::string_view operation;  // "read" or "write"
  std::string_view user;
  std::string_view expiration;  // Unix seconds in digits; empty: never
};
std::string sign(const SignedPath& what, std::string_view token);

// Puts the sandbox that the request is for into its parameter {id}, and the port into {port}.
void address_sandbox(Service& service, http::Request& request);
// Is it for a sandbox at all?
bool names_sandbox(const http::Request& request);

}  // namespace atl::api::e2b
