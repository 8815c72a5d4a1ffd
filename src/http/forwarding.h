// What whoever passes messages on has to know.
#pragma once

#include <string_view>

#include "http/headers.h"

namespace atl::http {

// Whether a field is for one connection, not for the message (RFC 9110 7.6.1). Framing is too: it
// is written anew.
bool is_hop_by_hop(std::string_view name, const Headers& headers);

// Whether the message asks to speak another protocol, or says so.
bool wants_upgrade(const Headers& headers);

}  // namespace atl::http
