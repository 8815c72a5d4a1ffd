#include "api/preview/fields.h"

#include <algorithm>

#include "api/preview/visitor.h"
#include "base/base64url.h"
#include "http/forwarding.h"

namespace atl::api::preview {
namespace {

using http::equals_ignoring_case;

constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kSubprotocol = "bearer.";
constexpr std::string_view kSandboxed =
    "sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads";

bool starts_ignoring_case(std::string_view text, std::string_view start) {
  return text.size() >= start.size() && equals_ignoring_case(text.substr(0, start.size()), start);
}

bool is_any_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view one) { return equals_ignoring_case(name, one); });
}

// Written anew, or ours to read.
bool is_replaced(std::string_view name) {
  return starts_ignoring_case(name, "x-forwarded-") || starts_ignoring_case(name, "atoll-") ||
         is_any_of(name, {"host", "forwarded", "x-real-ip", "e2b-traffic-access-token",
                          "e2b-sandbox-id", "e2b-sandbox-port"});
}

bool is_credential(const Service& service, const http::Field& field) {
  auto own = [&](std::string_view text) {
    return service.tokens.is_own_credential(text, sandbox::wall_clock_ms());
  };
  std::string_view value = field.value;
  // As browsers carry one to a WebSocket of the API's (api/principal.cpp).
  if (equals_ignoring_case(field.name, "sec-websocket-protocol")) {
    size_t at = value.find(kSubprotocol);
    if (at == value.npos) return false;
    value.remove_prefix(at + kSubprotocol.size());
    auto token = base64url_decode(value.substr(0, value.find_first_of(", ")));
    return token && own(*token);
  }
  if (starts_ignoring_case(value, kBearer)) value.remove_prefix(kBearer.size());
  return own(http::trim(value));
}

// "a=1; b=2" without one of them.
std::string without_cookie(std::string_view all, std::string_view name) {
  std::string kept;
  while (!all.empty()) {
    size_t end = std::min(all.find(';'), all.size());
    std::string_view one = http::trim(all.substr(0, end));
    all.remove_prefix(std::min(end + 1, all.size()));
    if (one.empty() || one.substr(0, one.find('=')) == name) continue;
    kept.append(kept.empty() ? "" : "; ").append(one);
  }
  return kept;
}

std::string host_inside(const http::Request& request, const Address& address,
                        const sandbox::Ingress& ingress) {
  constexpr std::string_view kPort = "${PORT}";
  std::string port = std::to_string(address.port);
  if (ingress.host.empty()) {
    // The API's name would mean nothing inside.
    if (address.form == Form::Path) return "localhost:" + port;
    return std::string(request.headers.get("host").value_or(""));
  }
  std::string host = ingress.host;
  for (size_t at; (at = host.find(kPort)) != host.npos;) host.replace(at, kPort.size(), port);
  return host;
}

// A cookie is the port's own: other hosts below the domain are other sandboxes'.
std::string for_own_host(std::string_view cookie) {
  std::string kept;
  while (!cookie.empty()) {
    size_t end = std::min(cookie.find(';'), cookie.size());
    std::string_view one = http::trim(cookie.substr(0, end));
    cookie.remove_prefix(std::min(end + 1, cookie.size()));
    if (!kept.empty() && equals_ignoring_case(http::trim(one.substr(0, one.find('='))), "domain")) {
      continue;
    }
    kept.append(kept.empty() ? "" : "; ").append(one);
  }
  return kept;
}

// On the API's origin a redirect within "/" would lead to the API, with the credentials of whoever
// follows it.
std::string below_prefix(const http::Request& request, const Address& address,
                         std::string_view location) {
  std::string host(request.headers.get("host").value_or(""));
  for (std::string_view scheme : {"http:", "https:", ""}) {
    std::string origin = std::string(scheme) + "//" + host;
    bool own = !host.empty() && starts_ignoring_case(location, origin) &&
               (location.size() == origin.size() || location[origin.size()] == '/');
    if (own) return address.prefix() + std::string(location.substr(origin.size()));
  }
  // Browsers read a backslash as a slash.
  bool rooted = location.starts_with('/') || location.starts_with('\\');
  bool foreign = location.size() > 1 && rooted && (location[1] == '/' || location[1] == '\\');
  if (!rooted || foreign) return std::string(location);
  return address.prefix() + "/" + std::string(location.substr(1));
}

bool is_dropped(std::string_view name, Form form) {
  // They speak for more than one origin, or lead past us. The date is written anew.
  if (is_any_of(name, {"clear-site-data", "alt-svc", "date", "atoll-preview"})) return true;
  if (form == Form::Host) return false;
  return starts_ignoring_case(name, "access-control-") ||
         is_any_of(name, {"set-cookie", "service-worker-allowed", "strict-transport-security",
                          "report-to", "reporting-endpoints", "nel"});
}

}  // namespace

http::Headers fields_inward(const Service& service, const http::Request& request,
                            const Address& address, const sandbox::Ingress& ingress) {
  http::Headers out;
  out.add("Host", host_inside(request, address, ingress));
  for (const http::Field& field : request.headers) {
    if (http::is_hop_by_hop(field.name, request.headers) || is_replaced(field.name)) continue;
    if (is_credential(service, field)) continue;
    if (!equals_ignoring_case(field.name, "cookie")) {
      out.add(field.name, field.value);
      continue;
    }
    if (address.form == Form::Path) continue;
    std::string cookies = without_cookie(field.value, cookie_name(service.settings));
    if (!cookies.empty()) out.add("Cookie", std::move(cookies));
  }
  if (!request.peer.address.empty()) out.add("X-Forwarded-For", request.peer.address);
  out.add("X-Forwarded-Host", std::string(request.headers.get("host").value_or("")));
  bool secure = service.settings.base_url.starts_with("https://");
  out.add("X-Forwarded-Proto", secure ? "https" : "http");
  if (address.form == Form::Path) out.add("X-Forwarded-Prefix", address.prefix());
  if (http::wants_upgrade(request.headers)) {
    out.add("Upgrade", std::string(*request.headers.get("Upgrade")));
  }
  return out;
}

void clean_outward(const Service& service, const http::Request& request, const Address& address,
                   http::ResponseHead& head) {
  http::Headers kept;
  for (const http::Field& field : head.headers) {
    if (is_dropped(field.name, address.form)) continue;
    if (equals_ignoring_case(field.name, "set-cookie")) {
      std::string_view name =
          http::trim(std::string_view(field.value).substr(0, field.value.find('=')));
      if (name == cookie_name(service.settings)) continue;
      kept.add(field.name, for_own_host(field.value));
    } else if (address.form == Form::Path && equals_ignoring_case(field.name, "location")) {
      kept.add(field.name, below_prefix(request, address, field.value));
    } else {
      kept.add(field.name, field.value);
    }
  }
  if (address.form == Form::Path) {
    // Beside the page's own policy, of which both hold.
    kept.add("Content-Security-Policy", std::string(kSandboxed));
    kept.set("X-Content-Type-Options", "nosniff");
    kept.set("Referrer-Policy", "no-referrer");
  }
  head.headers = std::move(kept);
}

}  // namespace atl::api::preview
