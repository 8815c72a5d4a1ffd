#include "sandbox/preview_link.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <tuple>

namespace atl::sandbox {

namespace json = boost::json;

static constexpr std::string_view kNames[] = {"private", "public", "signed"};

std::string_view to_string(LinkAccess access) { return kNames[static_cast<size_t>(access)]; }

std::optional<LinkAccess> parse_link_access(std::string_view text) {
  auto found = std::find(std::begin(kNames), std::end(kNames), text);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<LinkAccess>(found - std::begin(kNames));
}

store::Document PreviewLinks::document(const PreviewLink& link) {
  json::object body{{"sandbox", link.sandbox},
                    {"generation", link.generation},
                    {"port", link.port},
                    {"access", to_string(link.access)},
                    {"createdAtMs", link.created_at_ms},
                    {"expiresAtMs", link.expires_at_ms}};
  return {.kind = std::string(kKind),
          .tenant = link.tenant,
          .id = link.id,
          .body = json::serialize(body)};
}

static PreviewLink decode(const store::Document& document) {
  json::value parsed = json::parse(document.body);
  const json::object& object = parsed.as_object();
  PreviewLink link;
  link.id = document.id;
  link.tenant = document.tenant;
  link.sandbox = std::string(object.at("sandbox").as_string());
  link.generation = std::string(object.at("generation").as_string());
  link.port = object.at("port").to_number<uint16_t>();
  auto access = parse_link_access(std::string_view(object.at("access").as_string()));
  link.access = access.value_or(LinkAccess::Private);
  link.created_at_ms = object.at("createdAtMs").to_number<int64_t>();
  link.expires_at_ms = object.at("expiresAtMs").to_number<int64_t>();
  return link;
}

Result<void> PreviewLinks::load(const std::vector<store::Document>& documents) {
  std::vector<PreviewLink> all;
  for (const store::Document& document : documents) {
    try {
      all.push_back(decode(document));
    } catch (const std::exception& error) {
      return fail(ErrorCode::Internal, "damaged preview link: " + std::string(error.what()));
    }
  }
  std::sort(all.begin(), all.end(), [](const PreviewLink& a, const PreviewLink& b) {
    return std::tie(a.created_at_ms, a.id) < std::tie(b.created_at_ms, b.id);
  });
  for (PreviewLink& link : all) add(std::move(link));
  return {};
}

void PreviewLinks::add(PreviewLink link) {
  of_sandbox_[link.sandbox].push_back(link.id);
  links_[link.id] = std::move(link);
}

void PreviewLinks::remove(const std::string& id) {
  auto link = links_.extract(id);
  if (!link) return;
  auto of = of_sandbox_.find(link.mapped().sandbox);
  std::erase(of->second, id);
  if (of->second.empty()) of_sandbox_.erase(of);
}

const PreviewLink* PreviewLinks::find(const std::string& id) const {
  auto found = links_.find(id);
  return found == links_.end() ? nullptr : &found->second;
}

std::vector<const PreviewLink*> PreviewLinks::of(const std::string& sandbox) const {
  std::vector<const PreviewLink*> all;
  auto ids = of_sandbox_.find(sandbox);
  if (ids == of_sandbox_.end()) return all;
  for (const std::string& id : ids->second) all.push_back(find(id));
  return all;
}

bool PreviewLinks::is_public(const std::string& sandbox, uint16_t port, int64_t now_ms) const {
  auto all = of(sandbox);
  return std::any_of(all.begin(), all.end(), [&](const PreviewLink* link) {
    return link->port == port && link->access == LinkAccess::Public && !link->expired(now_ms);
  });
}

}  // namespace atl::sandbox
