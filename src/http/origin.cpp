#include "http/origin.h"

#include <algorithm>

namespace atl::http {
namespace {

constexpr std::string_view kSchemeEnd = "://";

std::string_view scheme_of(std::string_view origin) {
  size_t end = origin.find(kSchemeEnd);
  return end == origin.npos ? std::string_view() : origin.substr(0, end);
}

// A host with the port where it is not the scheme's own, which may be said or left out.
std::string_view shortest_host(std::string_view host, std::string_view scheme) {
  std::string_view own = equals_ignoring_case(scheme, "https") ? ":443" : ":80";
  if (host.ends_with(own)) host.remove_suffix(own.size());
  return host;
}

bool is_same_origin(std::string_view a, std::string_view b) {
  std::string_view scheme = scheme_of(a);
  if (scheme.empty() || !equals_ignoring_case(scheme, scheme_of(b))) return false;
  return equals_ignoring_case(shortest_host(a, scheme), shortest_host(b, scheme));
}

// Without regard to the scheme: whoever ends TLS in front of us keeps it to himself.
bool is_of_host(std::string_view origin, std::string_view host) {
  std::string_view scheme = scheme_of(origin);
  if (scheme.empty() || host.empty()) return false;
  std::string_view own = origin.substr(scheme.size() + kSchemeEnd.size());
  return equals_ignoring_case(shortest_host(own, scheme), shortest_host(host, scheme));
}

}  // namespace

std::string_view origin_of(std::string_view url) {
  size_t host = url.find(kSchemeEnd);
  if (host == url.npos) return {};
  return url.substr(0, url.find('/', host + kSchemeEnd.size()));
}

bool is_origin_allowed(const Request& request, const std::vector<std::string>& allowed) {
  auto origin = request.headers.get("origin");
  if (!origin) return true;
  if (request.headers.count("origin") > 1) return false;
  if (is_of_host(*origin, request.headers.get("host").value_or(""))) return true;
  return std::any_of(allowed.begin(), allowed.end(), [&](const std::string& url) {
    return is_same_origin(*origin, origin_of(url));
  });
}

}  // namespace atl::http
