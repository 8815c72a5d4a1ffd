// Errors as E2B's clients expect them.
#pragma once

#include <string>

#include "base/error.h"
#include "http/message.h"

namespace atl::api::e2b {

// {"code":404,"message":".."}; with "fields" where a field is at fault.
http::Response control_error(const http::Request& request, const Error& error);
// Of a request to a sandbox: 502 where it cannot be reached, the Connect protocol's error for its
// services, {"code":..,"message":..} for the rest.
http::Response sandbox_error(const http::Request& request, const Error& error);

// {"code":"not_found","message":".."}
std::string connect_error_json(const Error& error);

// The sandbox runs, but nothing answers on the port.
Error port_not_open(const std::string& port);

}  // namespace atl::api::e2b
