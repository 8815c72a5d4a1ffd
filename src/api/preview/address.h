// Which port of which sandbox a request is for, by its host's name or its path.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace atl::api::preview {

enum class Form : uint8_t {
  Host,  // PORT-ID.DOMAIN: an origin of its own
  Path,  // /preview/ID/PORT/...: on the API's origin, so what is there may do less
};

struct Address {
  Form form = Form::Host;
  std::string sandbox;  // an id, or what could be one
  uint16_t port = 0;
  std::string target;  // what is asked for there, as it was sent

  // "/preview/ID/PORT", or nothing.
  std::string prefix() const;
};

// Whether the host is a sandbox's port, or would be if it were spelled right. `own` is the server's
// name, which may be below the same domain.
bool is_port_host(std::string_view host, std::string_view domain, std::string_view own);
bool is_port_path(std::string_view target);

std::optional<Address> address_by_host(const http::Request& request, std::string_view domain);
std::optional<Address> address_by_path(const http::Request& request);

// "host" of "host:port", in lower case and without a dot at its end.
std::string bare_host(std::string_view authority);

// The target without those parameters of its query, told by name and value; the rest stays as it
// was sent.
using IsDropped = std::function<bool(std::string_view name, std::string_view value)>;
std::string without_parameters(std::string_view target, const IsDropped& is_dropped);

}  // namespace atl::api::preview
