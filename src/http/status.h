// Errors as HTTP carries them. The status is a function of the ErrorCode alone, here and nowhere
// else.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"

namespace atl::http {

int status_of(ErrorCode code);
// The SDKs' upper-case names: "NOT_FOUND".
std::string_view wire_code(ErrorCode code);
std::string_view reason_phrase(int status);

// {"success":false,"error":{"code":..,"message":..},"code":..,"message":..}, and "fields":[name]
// in both places where the error names a field; "retryAfterMs" and the Retry-After header where it
// says how long to wait.
Response error_response(const Error& error);
// For statuses that no ErrorCode has, such as 405 and 431.
Response error_response(int status, std::string_view code, std::string_view message);

// The inverse, for clients: from a status and the wire code (which may be empty).
ErrorCode error_code_of(int status, std::string_view wire);
// From a whole response that is not a success.
Error error_from_response(int status, std::string_view body);

}  // namespace atl::http
