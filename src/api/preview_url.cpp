#include "api/preview_url.h"

#include <charconv>

namespace atl::api {

static constexpr std::string_view kSchemeEnd = "://";

std::string preview_authority(const ServiceSettings& settings) {
  std::string_view url = settings.base_url;
  size_t scheme = url.find(kSchemeEnd);
  if (scheme == url.npos) return {};
  std::string_view host = url.substr(scheme + kSchemeEnd.size());
  host = host.substr(0, host.find('/'));
  size_t colon = host.find_last_of(':');
  bool has_port = colon != host.npos && host.find(']', colon) == host.npos;
  return settings.preview_domain + std::string(has_port ? host.substr(colon) : "");
}

std::string preview_origin(const ServiceSettings& settings, const std::string& sandbox,
                           uint16_t port) {
  std::string authority = preview_authority(settings);
  if (authority.empty()) return {};
  std::string scheme = settings.base_url.substr(0, settings.base_url.find(kSchemeEnd));
  return scheme + "://" + std::to_string(port) + "-" + sandbox + "." + authority;
}

std::optional<uint16_t> parse_port(std::string_view text) {
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || port == 0 || text.starts_with('0')) return std::nullopt;
  return port;
}

auth::PreviewGrant grant_of(const sandbox::PreviewLink& link) {
  return {
      .link = link.id, .sandbox = link.sandbox, .generation = link.generation, .port = link.port};
}

}  // namespace atl::api
