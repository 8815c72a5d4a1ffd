// Short-lived tokens for a part of one sandbox, and the key that they can be verified with.
#include <boost/json/serialize.hpp>

#include "api/routes.h"
#include "api/shapes.h"

namespace atl::api {
namespace {

namespace json = boost::json;

Task<Result<void>> reply(Context& context, const std::string& id, const auth::MintedToken& minted,
                         http::ResponseWriter& writer) {
  json::object body{{"token", minted.text},
                    {"expiresAt", iso_time(minted.token.expires_at_ms)},
                    {"scope", auth::to_string(minted.token.scope)}};
  const std::string& base = context.service.settings.base_url;
  if (!base.empty()) body["sidecarProxyUrl"] = base + "/v1/sidecar-proxy/" + id;
  co_return co_await writer.send_json(json::serialize(body), 201);
}

Task<Result<void>> mint(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, 16u << 10));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(std::string name, reader.require_string("scope"));
  ATOLL_CO_ASSIGN(auto session, reader.optional_string("sessionId"));
  ATOLL_CO_ASSIGN(auto minutes, reader.optional_integer("ttlMinutes", INT32_MIN, INT32_MAX));
  ATOLL_CO_TRY(reader.finish());
  auto scope = auth::parse_token_scope(name);
  if (!scope) {
    co_return fail(Error(ErrorCode::InvalidArgument, "a scope is session, project or read-only")
                       .with_field("scope"));
  }
  bool needs_session = *scope == auth::TokenScope::Session;
  if (needs_session && (!session || session->empty() || session->size() > 128)) {
    co_return fail(Error(ErrorCode::InvalidArgument, "scope 'session' needs the session's id")
                       .with_field("sessionId"));
  }
  const sandbox::Record& record = sandbox->record;
  auth::ScopedTokenRequest wanted{.tenant = record.owner.tenant,
                                  .sandbox = record.id,
                                  .generation = record.generation,
                                  .scope = *scope,
                                  .ttl_minutes = minutes};
  if (needs_session) wanted.session = *session;
  ATOLL_CO_ASSIGN(auto minted, context.service.tokens.mint(wanted, sandbox::wall_clock_ms()));
  co_return co_await reply(context, record.id, minted, writer);
}

// A token that still verifies, or did until a short while ago, against a fresh one of its kind.
Task<Result<void>> refresh(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, 16u << 10));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(std::string token, reader.require_string("token"));
  ATOLL_CO_TRY(reader.finish());
  const sandbox::Record& record = sandbox->record;
  auto minted =
      context.service.tokens.refresh(token, record.id, record.generation, sandbox::wall_clock_ms());
  // Of the body, not of the caller, whose own credentials are good.
  if (!minted) {
    co_return fail(Error(ErrorCode::InvalidArgument, minted.error().message()).with_field("token"));
  }
  co_return co_await reply(context, record.id, *minted, writer);
}

Task<Result<void>> jwks(Context& context, http::Request&, http::ResponseWriter& writer) {
  co_return co_await writer.send_json(context.service.tokens.jwks());
}

}  // namespace

void add_token_routes(ControlRoutes& routes) {
  routes.add(Access::Write, "POST", "/v1/sandboxes/{id}/tokens", mint);
  routes.add(Access::Write, "POST", "/v1/sandboxes/{id}/tokens/refresh", refresh);
  routes.add(Access::Open, "GET", "/.well-known/jwks.json", jwks);
}

}  // namespace atl::api
