#include "api/preview/address.h"

#include <algorithm>

#include "api/own_ports.h"
#include "api/preview_url.h"
#include "base/random_id.h"
#include "http/target.h"

namespace atl::api::preview {
namespace {

constexpr std::string_view kPathStart = "/preview/";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What stands before the domain; none where nothing does.
std::optional<std::string> label_below(const std::string& host, std::string_view domain) {
  if (domain.empty() || host.size() <= domain.size() + 1 || !host.ends_with(domain)) {
    return std::nullopt;
  }
  std::string label = host.substr(0, host.size() - domain.size() - 1);
  if (host[label.size()] != '.') return std::nullopt;
  return label;
}

struct PortLabel {
  std::optional<uint16_t> port;
  std::string sandbox;
};

PortLabel split(const std::string& label) {
  size_t dash = std::min(label.find('-'), label.size());
  return {parse_port(std::string_view(label).substr(0, dash)),
          dash == label.size() ? std::string() : label.substr(dash + 1)};
}

// What is asked for, where the target may name a host too.
std::string origin_form(std::string_view target) {
  auto split = http::split_target(target);
  if (!split) return "/";
  std::string path(split->path.empty() ? "/" : split->path);
  bool query = target.find('?') != target.npos;
  return query ? path + "?" + std::string(split->query) : path;
}

}  // namespace

std::string Address::prefix() const {
  if (form == Form::Host) return {};
  return std::string(kPathStart) + sandbox + "/" + std::to_string(port);
}

std::string bare_host(std::string_view authority) {
  size_t colon = authority.find_last_of(':');
  if (colon != authority.npos && authority.find(']', colon) == authority.npos) {
    authority = authority.substr(0, colon);
  }
  std::string host(authority);
  if (host.ends_with('.')) host.pop_back();
  std::transform(host.begin(), host.end(), host.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return host;
}

bool is_port_host(std::string_view authority, std::string_view domain, std::string_view own) {
  std::string host = bare_host(authority);
  if (host == own) return false;
  auto label = label_below(host, domain);
  if (!label) return false;
  size_t digits = 0;
  while (digits < label->size() && is_digit((*label)[digits])) digits++;
  if (digits == 0 || digits == label->size() || (*label)[digits] != '-') return false;
  PortLabel parts = split(*label);
  bool ours = parts.port == parse_port(kDaemonPort) || parts.port == parse_port(kInterpreterPort);
  return !ours || !parts.sandbox.starts_with("sandbox-");
}

bool is_port_path(std::string_view target) {
  auto split = http::split_target(target);
  return split && (split->path.starts_with(kPathStart) || split->path == "/preview");
}

std::optional<Address> address_by_host(const http::Request& request, std::string_view domain) {
  auto label = label_below(bare_host(request.headers.get("host").value_or("")), domain);
  if (!label) return std::nullopt;
  PortLabel parts = split(*label);
  if (!parts.port || !is_valid_id(parts.sandbox)) return std::nullopt;
  return Address{.form = Form::Host,
                 .sandbox = parts.sandbox,
                 .port = *parts.port,
                 .target = origin_form(request.target)};
}

std::optional<Address> address_by_path(const http::Request& request) {
  std::string whole = origin_form(request.target);
  std::string_view rest = whole;
  if (!rest.starts_with(kPathStart)) return std::nullopt;
  rest.remove_prefix(kPathStart.size());
  size_t slash = rest.find('/');
  if (slash == rest.npos) return std::nullopt;
  std::string sandbox(rest.substr(0, slash));
  rest.remove_prefix(slash + 1);
  size_t end = std::min(rest.find_first_of("/?"), rest.size());
  auto port = parse_port(rest.substr(0, end));
  if (!port || !is_valid_id(sandbox)) return std::nullopt;
  std::string target(rest.substr(end));
  if (!target.starts_with('/')) target.insert(0, "/");
  return Address{
      .form = Form::Path, .sandbox = std::move(sandbox), .port = *port, .target = target};
}

std::string without_parameters(std::string_view target, const IsDropped& is_dropped) {
  size_t mark = target.find('?');
  if (mark == target.npos) return std::string(target);
  std::string kept;
  bool found = false;
  std::string_view query = target.substr(mark + 1);
  while (!query.empty()) {
    size_t end = std::min(query.find('&'), query.size());
    std::string_view one = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    size_t equals = std::min(one.find('='), one.size());
    auto name = http::percent_decode(one.substr(0, equals));
    auto value = http::percent_decode(one.substr(std::min(equals + 1, one.size())));
    if (name && value && is_dropped(*name, *value)) {
      found = true;
      continue;
    }
    kept.append(kept.empty() ? "?" : "&").append(one);
  }
  return found ? std::string(target.substr(0, mark)) + kept : std::string(target);
}

}  // namespace atl::api::preview
