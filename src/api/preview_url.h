// What sandboxes' ports are called.
#pragma once

#include <string>

#include "api/service.h"

namespace atl::api {

// Carries a preview token, once: what comes back is a cookie, and an address without it.
inline constexpr std::string_view kPreviewParameter = "atoll-preview-token";

// "localhost:7777": what follows the first dot. Empty where there is no TCP port.
std::string preview_authority(const ServiceSettings& settings);
// "http://3000-sandbox-1.localhost:7777"; empty where there is no TCP port.
std::string preview_origin(const ServiceSettings& settings, const std::string& sandbox,
                           uint16_t port);
// A number from 1 to 65535, in digits without a leading zero.
std::optional<uint16_t> parse_port(std::string_view text);

auth::PreviewGrant grant_of(const sandbox::PreviewLink& link);

}  // namespace atl::api
