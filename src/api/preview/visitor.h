// Who may open a port, and by what they show it.
#pragma once

#include <string>

#include "api/preview/address.h"
#include "api/service.h"
#include "http/message.h"

namespace atl::api::preview {

// The header that carries a preview token, for programs.
inline constexpr std::string_view kTokenHeader = "atoll-preview-token";
inline constexpr std::string_view kTrafficHeader = "e2b-traffic-access-token";

// The cookie's name: with "__Host-" where browsers take that, which keeps others from setting it.
std::string_view cookie_name(const ServiceSettings& settings);
// The value of the cookie in a request; empty: none.
std::string cookie_of(const http::Headers& headers, std::string_view name);

struct Admitted {
  enum class By : uint8_t { Public, Credential, Url, Cookie };
  By by = By::Public;
  sandbox::SandboxPtr sandbox;
  std::string link;  // of the token
};

// Unauthenticated where something more must be shown, whether or not there is such a sandbox;
// NotFound for a credential of this server's that is not for it; PermissionDenied for one that may
// do less, and for a page of another origin.
Result<Admitted> admit(Service& service, const http::Request& request, const Address& address);

// Whether what they were admitted by still stands.
bool holds(Service& service, const Admitted& admitted, const Address& address);

}  // namespace atl::api::preview
