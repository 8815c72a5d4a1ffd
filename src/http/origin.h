// Which web pages may open a WebSocket here. Browsers let every page try, and say which it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace atl::http {

// Whether the request comes from a page of the host that it is sent to, from a page of one of the
// `allowed` origins ("https://example.com"), or from no page at all.
bool is_origin_allowed(const Request& request, const std::vector<std::string>& allowed);

// The origin of a URL: what comes before its path.
std::string_view origin_of(std::string_view url);

}  // namespace atl::http
