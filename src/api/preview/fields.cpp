#include "api/preview/fields.h"

#include <algorithm>
#include <optional>

#include "api/preview/visitor.h"
#include "api/preview_url.h"
#include "base/base64url.h"
#include "http/base64.h"
#include "http/forwarding.h"
#include "http/target.h"

namespace atl::api::preview {
namespace {

using http::equals_ignoring_case;

constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kBasic = "Basic ";
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

bool is_own(const Service& service, std::string_view text) {
  return service.tokens.is_own_credential(text, sandbox::wall_clock_ms());
}

// "user:password" in base64, either of which may be one.
bool is_own_basic(const Service& service, std::string_view encoded) {
  std::string pair = http::base64_decode(http::trim(encoded)).value_or("");
  size_t colon = std::min(pair.find(':'), pair.size());
  std::string_view all = pair;
  return is_own(service, all.substr(0, colon)) ||
         is_own(service, all.substr(std::min(colon + 1, all.size())));
}

bool is_credential(const Service& service, const http::Field& field) {
  auto own = [&](std::string_view text) { return is_own(service, text); };
  std::string_view value = field.value;
  // As browsers carry one to a WebSocket of the API's (api/principal.cpp).
  if (equals_ignoring_case(field.name, "sec-websocket-protocol")) {
    size_t at = value.find(kSubprotocol);
    if (at == value.npos) return false;
    value.remove_prefix(at + kSubprotocol.size());
    auto token = base64url_decode(value.substr(0, value.find_first_of(", ")));
    return token && own(*token);
  }
  if (starts_ignoring_case(value, kBasic)) {
    return is_own_basic(service, value.substr(kBasic.size()));
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

// Where a path leads, seen from the sandbox's own root: what would climb out of it stays there.
std::string without_dot_segments(std::string_view path) {
  std::string kept;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    size_t end = std::min(path.find_first_of("/\\"), path.size());
    std::string_view one = path.substr(0, end);
    path.remove_prefix(end);
    std::string plain = http::percent_decode(one).value_or(std::string(one));
    bool last = path.empty();
    if (plain == "..") kept.resize(std::min(kept.find_last_of('/'), kept.size()));
    if (plain == ".." || plain == ".") {
      if (last) kept += '/';
    } else {
      kept.append("/").append(one);
    }
  }
  return kept.empty() ? "/" : kept;
}

// "HTTP://user@host:port/rest" without what stands before "/rest"; none where it is another host's.
std::optional<std::string_view> rest_on_host(std::string_view location, std::string_view host) {
  size_t slashes = location.find_first_of("/\\");
  bool names_host = slashes != location.npos && slashes + 1 < location.size() &&
                    (location[slashes + 1] == '/' || location[slashes + 1] == '\\');
  if (!names_host) return std::nullopt;
  location.remove_prefix(slashes + 2);
  size_t end = std::min(location.find_first_of("/\\?#"), location.size());
  std::string_view authority = location.substr(0, end);
  if (size_t at = authority.rfind('@'); at != authority.npos) authority.remove_prefix(at + 1);
  // Ports and trailing dots have many spellings: the name alone decides.
  if (bare_host(authority) != bare_host(host)) return std::nullopt;
  return location.substr(end);
}

bool is_slash(char c) { return c == '/' || c == '\\'; }
bool is_rooted(std::string_view location) { return !location.empty() && is_slash(location[0]); }

// What of a location with a scheme or a host is this host's; none where it is another's.
std::optional<std::string_view> rest_of_whole(std::string_view location, std::string_view host) {
  if (auto rest = rest_on_host(location, host)) return rest;
  // "http:/path" and "http:path" are this host's to browsers.
  bool vague = starts_ignoring_case(location, "http") && location.find("//") == location.npos;
  return vague ? std::optional(location.substr(location.find(':') + 1)) : std::nullopt;
}

// On the API's origin a redirect within "/" would lead to the API, with the credentials of whoever
// follows it. What stays on this host is therefore resolved here, from the sandbox's own root.
std::string below_prefix(const http::Request& request, const Address& address,
                         std::string location) {
  std::erase(location, '\t');  // browsers read over them, wherever they stand
  size_t mark = std::min(location.find_first_of("/\\?#"), location.size());
  bool has_scheme = location.find(':') < mark;
  bool names_host = location.size() > 1 && is_slash(location[0]) && is_slash(location[1]);
  if (has_scheme || names_host) {
    auto rest = rest_of_whole(location, request.headers.get("host").value_or(""));
    if (!rest) return location;
    location = (is_rooted(*rest) ? "" : "/") + std::string(*rest);
  }
  if (location.empty() || location[0] == '?' || location[0] == '#') return location;
  size_t tail = std::min(location.find_first_of("?#"), location.size());
  std::string path = location.substr(0, tail);
  if (!is_rooted(path)) {
    std::string_view here = std::string_view(address.target).substr(0, address.target.find('?'));
    path.insert(0, here.substr(0, here.find_last_of('/') + 1));
  }
  return address.prefix() + without_dot_segments(path) + location.substr(tail);
}

bool is_dropped(std::string_view name, Form form) {
  // They speak for more than one origin, or lead past us. The date is written anew.
  if (is_any_of(name, {"clear-site-data", "alt-svc", "date", "atoll-preview"})) return true;
  // Orders to a web server in front of this one (nginx, Apache, lighttpd), not to the visitor.
  if (starts_ignoring_case(name, "x-accel-") ||
      is_any_of(name, {"x-sendfile", "x-lighttpd-send-file", "x-reproxy-url"})) {
    return true;
  }
  if (form == Form::Host) return false;
  return starts_ignoring_case(name, "access-control-") ||
         is_any_of(name, {"set-cookie", "service-worker-allowed", "strict-transport-security",
                          "report-to", "reporting-endpoints", "nel"});
}

}  // namespace

std::string target_inward(const Service& service, std::string_view target) {
  return without_parameters(target, [&](std::string_view name, std::string_view value) {
    return name == kPreviewParameter || is_own(service, value);
  });
}

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
