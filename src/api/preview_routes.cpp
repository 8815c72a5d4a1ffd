// Links to a sandbox's ports, and raw connections to them.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/preview_url.h"
#include "api/routes.h"
#include "api/shapes.h"
#include "api/traffic.h"
#include "http/status.h"

namespace atl::api {
namespace {

namespace json = boost::json;
using sandbox::LinkAccess;
using sandbox::PreviewLink;

constexpr int64_t kOpenSeconds = 15 * 60;  // for which a private link's URL can be opened
constexpr uint32_t kSignedSeconds = 3600;
constexpr int64_t kMostSeconds = int64_t{366} * 86400;
constexpr std::string_view kTcpProtocol = "tcp";

Error bad(std::string_view field, std::string message) {
  return Error(ErrorCode::InvalidArgument, std::move(message)).with_field(field);
}

// With a token where the link wants one and the caller may give it away.
std::string url_of(Context& context, const http::Request& request, const PreviewLink& link) {
  std::string url = preview_origin(context.service.settings, link.sandbox, link.port);
  if (url.empty()) return url;
  url += "/";
  bool may = authorize(context.who, Access::RuntimeWrite, request).has_value();
  if (link.access == LinkAccess::Public || !may) return url;
  int64_t now = sandbox::wall_clock_ms();
  int64_t until =
      link.access == LinkAccess::Signed ? link.expires_at_ms / 1000 : now / 1000 + kOpenSeconds;
  if (link.expires_at_ms != 0) until = std::min(until, link.expires_at_ms / 1000);
  std::string token =
      context.service.tokens.preview_token(grant_of(link), auth::PreviewPlace::Url, until);
  return url + "?" + std::string(kPreviewParameter) + "=" + token;
}

json::object link_json(Context& context, const http::Request& request, const PreviewLink& link) {
  const ServiceSettings& settings = context.service.settings;
  std::string url = url_of(context, request, link);
  std::string origin = preview_origin(settings, link.sandbox, link.port);
  bool over = link.expired(sandbox::wall_clock_ms());
  json::object object{{"previewId", link.id},
                      {"sandboxId", link.sandbox},
                      {"port", link.port},
                      {"access", to_string(link.access)},
                      {"status", over ? "disabled" : "ready"},
                      {"url", nullptr},
                      {"origin", nullptr},
                      {"path", "/preview/" + link.sandbox + "/" + std::to_string(link.port) + "/"},
                      {"createdAt", iso_time(link.created_at_ms)},
                      {"expiresAt", nullptr}};
  if (!url.empty()) {
    object["url"] = url;
    object["origin"] = origin;
  }
  if (link.expires_at_ms != 0) object["expiresAt"] = iso_time(link.expires_at_ms);
  return object;
}

Result<uint16_t> read_port(http::JsonObjectReader& reader) {
  ATOLL_ASSIGN(auto port, reader.optional_integer("port", 1, 65535));
  if (!port) return fail(bad("port", "give the port inside the sandbox"));
  return static_cast<uint16_t>(*port);
}

Result<sandbox::PreviewWish> read_wish(const json::object& object) {
  http::JsonObjectReader reader(object);
  sandbox::PreviewWish wish;
  ATOLL_ASSIGN(wish.port, read_port(reader));
  ATOLL_ASSIGN(auto protocol, reader.optional_string("protocol"));
  ATOLL_ASSIGN(auto access, reader.optional_string("access"));
  ATOLL_ASSIGN(auto seconds, reader.optional_integer("expiresInSeconds", 1, kMostSeconds));
  ATOLL_TRY(reader.finish());
  if (protocol && *protocol != "tcp" && *protocol != "http") {
    return fail(bad("protocol", "a link is for http, which tcp means too"));
  }
  auto parsed = sandbox::parse_link_access(access.value_or("private"));
  if (!parsed) return fail(bad("access", "access is private, public or signed"));
  wish.access = *parsed;
  if (wish.access == LinkAccess::Signed) wish.seconds = kSignedSeconds;
  if (seconds) wish.seconds = static_cast<uint32_t>(*seconds);
  return wish;
}

Task<Result<PreviewLink>> make_link(Context& context, sandbox::SandboxPtr sandbox,
                                    sandbox::PreviewWish wish) {
  ATOLL_CO_ASSIGN(PreviewLink link, co_await context.manager.add_preview(std::move(sandbox), wish));
  context.made = link.id;
  co_return link;
}

Task<Result<void>> create(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, 16u << 10));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  ATOLL_CO_ASSIGN(sandbox::PreviewWish wish, read_wish(*object));
  ATOLL_CO_ASSIGN(PreviewLink link, co_await make_link(context, std::move(sandbox), wish));
  json::object body{{"previewLink", link_json(context, request, link)}};
  co_return co_await writer.send_json(json::serialize(body), 201);
}

Task<Result<void>> list(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  json::array all;
  for (const PreviewLink* link : context.manager.previews().of(sandbox->record.id)) {
    all.push_back(link_json(context, request, *link));
  }
  co_return co_await writer.send_json(json::serialize(json::object{{"previewLinks", all}}));
}

Result<const PreviewLink*> find_link(Context& context, const http::Request& request) {
  ATOLL_ASSIGN(auto sandbox, find_sandbox(context, request));
  const std::string& id = request.param("preview");
  const PreviewLink* link = context.manager.previews().find(id);
  if (link != nullptr && link->sandbox == sandbox->record.id) return link;
  return fail(ErrorCode::NotFound, "the sandbox has no preview link '" + id + "'");
}

Task<Result<void>> get(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(const PreviewLink* link, find_link(context, request));
  json::object body{{"previewLink", link_json(context, request, *link)}};
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_TRY(
      co_await context.manager.remove_preview(std::move(sandbox), request.param("preview")));
  co_return co_await writer.send_json(std::string(kSuccess));
}

// Tangle's first form of the same.
Task<Result<void>> expose(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, 16u << 10));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  sandbox::PreviewWish wish;
  ATOLL_CO_ASSIGN(wish.port, read_port(reader));
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_ASSIGN(PreviewLink link, co_await make_link(context, std::move(sandbox), wish));
  json::object made = link_json(context, request, link);
  json::object body{{"url", made["url"]}, {"previewId", link.id}};
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> urls(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  json::object all;
  int64_t now = sandbox::wall_clock_ms();
  for (const PreviewLink* link : context.manager.previews().of(sandbox->record.id)) {
    if (link->expired(now)) continue;
    all[std::to_string(link->port)] = link_json(context, request, *link)["url"];
  }
  co_return co_await writer.send_json(json::serialize(json::object{{"urls", std::move(all)}}));
}

Task<Result<void>> ask_for_upgrade(http::ResponseWriter& writer) {
  http::Response response = http::error_response(426, "UPGRADE_REQUIRED",
                                                 "send 'Connection: Upgrade' and 'Upgrade: tcp'");
  response.headers.add("Upgrade", std::string(kTcpProtocol));
  co_return co_await writer.send(std::move(response));
}

// The port's bytes as they are, in place of HTTP.
Task<Result<void>> connect(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  auto port = parse_port(request.param("port"));
  if (!port) co_return fail(bad("port", "a port is a number from 1 to 65535"));
  bool asked = request.headers.has_token("Connection", "upgrade") &&
               request.headers.has_token("Upgrade", kTcpProtocol);
  if (!asked) co_return co_await ask_for_upgrade(writer);
  ATOLL_CO_TRY(co_await request.body->read_all(0));
  ATOLL_CO_TRY(Traffic::check_room(*sandbox));
  Traffic traffic(context.manager, sandbox);
  ATOLL_CO_ASSIGN(UniqueFd fd, co_await context.manager.dial(sandbox, *port));
  auto executor = co_await boost::asio::this_coro::executor;
  http::DeadlineQueue deadlines(executor);
  http::Socket upstream(executor, std::move(fd), deadlines);
  co_await http::ignore_cancellation();
  http::Headers agreed{{"Connection", "Upgrade"}, {"Upgrade", std::string(kTcpProtocol)}};
  auto client = co_await writer.switch_protocols(std::move(agreed));
  if (client) {
    traffic.answered();
    http::WriteParts early{client->early};
    Result<void> begun;
    if (!client->early.empty()) begun = co_await upstream.write(early, std::chrono::minutes(1));
    if (begun) co_await http::tunnel(*client->socket, upstream, traffic);
  }
  co_await http::hear_cancellation();
  co_return Result<void>();
}

}  // namespace

void add_preview_routes(RuntimeRoutes& routes) {
  routes.add(Access::RuntimeWrite, "POST", "/preview-links", create);
  routes.add(Access::RuntimeRead, "GET", "/preview-links", list);
  routes.add(Access::RuntimeRead, "GET", "/preview-links/{preview}", get);
  routes.add(Access::RuntimeWrite, "DELETE", "/preview-links/{preview}", remove);
  routes.add(Access::RuntimeWrite, "GET", "/ports/{port}/tcp", connect);
}

void add_exposed_routes(ControlRoutes& routes) {
  routes.add(Access::Write, "POST", "/v1/sandboxes/{id}/network/expose", expose);
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/network/urls", urls);
}

}  // namespace atl::api
