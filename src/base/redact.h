// Keeps credentials out of logs. It errs on the side of hiding: a log line that lacks a harmless
// word is a smaller loss than a key in a log file.
#pragma once

#include <string>
#include <string_view>

namespace atl {

inline constexpr std::string_view kRedacted = "[redacted]";

// Whether a field, a header or a parameter of this name holds a credential: one of its words is
// authorization, token, key, secret, password or cookie ("x-api-key", "runtimeToken", "PASSWORD").
bool names_secret(std::string_view name);

// `text` with what looks like a credential replaced: "sk-..." and "rt-..." keys, JSON web tokens,
// "Bearer ...", the values of "token=..." and the like, and passwords in URLs.
std::string redact(std::string_view text);

}  // namespace atl
