#include "api/principal.h"

#include <fmt/format.h>

#include "api/service.h"
#include "base/base64url.h"
#include "base/random_id.h"

namespace atl::api {
namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kSubprotocol = "bearer.";

// Browsers cannot set headers on a WebSocket or an EventSource: the former carries the token as a
// subprotocol, the latter as ?token=, where only a short-lived one is taken.
struct Presented {
  std::string text;
  bool in_url = false;
};

Result<Presented> presented(const http::Request& request) {
  if (auto header = request.headers.get("authorization")) {
    // A scheme's name has no case (RFC 9110 11.1).
    if (header->size() > kBearer.size() &&
        http::equals_ignoring_case(header->substr(0, kBearer.size()), kBearer)) {
      return Presented{.text = std::string(header->substr(kBearer.size()))};
    }
    return fail(ErrorCode::Unauthenticated, "send 'Authorization: Bearer KEY'");
  }
  if (auto offered = request.headers.get("sec-websocket-protocol")) {
    size_t at = offered->find(kSubprotocol);
    if (at != offered->npos) {
      std::string_view encoded = offered->substr(at + kSubprotocol.size());
      encoded = encoded.substr(0, encoded.find_first_of(", "));
      auto token = base64url_decode(encoded);
      if (!token) return fail(ErrorCode::Unauthenticated, "the bearer subprotocol is malformed");
      return Presented{.text = std::move(*token)};
    }
  }
  if (auto token = request.query.get("token")) {
    return Presented{.text = std::string(*token), .in_url = true};
  }
  return Presented{};
}

Principal local(const http::Request& request) {
  Principal who{.kind = Principal::Kind::Local,
                .actor = fmt::format("local:{}", request.peer.uid),
                .role = auth::Role::Admin};
  who.caller.all_tenants = true;
  return who;
}

Principal of_key(std::shared_ptr<const auth::ApiKey> key) {
  Principal who{.kind = Principal::Kind::Key, .actor = "key:" + key->id, .role = key->role};
  who.caller.owner = {.tenant = key->tenant, .key_id = key->id};
  who.caller.quota = key->quota;
  who.caller.all_tenants = key->role == auth::Role::Admin;
  who.key = std::move(key);
  return who;
}

Principal of_token(Principal::Kind kind, const sandbox::Record& record, std::string actor) {
  Principal who{.kind = kind, .actor = std::move(actor), .role = auth::Role::Member};
  who.caller.owner.tenant = record.owner.tenant;
  who.sandbox_id = record.id;
  return who;
}

tl::unexpected<Error> refused() {
  return fail(ErrorCode::Unauthenticated,
              "the token is not valid for this sandbox; ask for a new one");
}

// Both kinds of token are for one sandbox in one generation: a token for another, or for one that
// is gone, says nothing about what exists.
Result<Principal> runtime_token(Service& service, const http::Request& request,
                                const std::string& text) {
  auto sandbox = service.manager.index().find(request.param("id"));
  if (sandbox == nullptr) return refused();
  const sandbox::Record& record = sandbox->record;
  if (!service.tokens.is_runtime_token(text, record.id, record.generation)) return refused();
  return runtime_principal(record);
}

Result<Principal> scoped_token(Service& service, const http::Request& request,
                               const std::string& text) {
  ATOLL_ASSIGN(auto token, service.tokens.verify(text, sandbox::wall_clock_ms()));
  auto sandbox = service.manager.index().find(token.sandbox);
  if (sandbox == nullptr || sandbox->record.generation != token.generation ||
      request.param("id") != token.sandbox) {
    return refused();
  }
  Principal who = of_token(Principal::Kind::Scoped, sandbox->record, "token:" + token.id);
  who.scope = auth::to_string(token.scope);
  who.session_id = token.session.value_or("");
  return who;
}

}  // namespace

// An administrator may act for a tenant.
Result<void> apply_tenant(const http::Request& request, Principal& who) {
  auto tenant = request.headers.get("atoll-tenant");
  if (!tenant || *tenant == who.caller.owner.tenant) return {};
  if (who.kind == Principal::Kind::Nobody) return {};  // asked for credentials before all else
  if (!who.is_admin()) {
    return fail(ErrorCode::PermissionDenied, "only an administrator acts for another tenant");
  }
  if (!is_valid_id(*tenant)) {
    return fail(Error(ErrorCode::InvalidArgument,
                      "a tenant is 1 to 64 of a-z, 0-9 and '-', and does not start with '-'")
                    .with_field("Atoll-Tenant"));
  }
  who.caller.owner.tenant = std::string(*tenant);
  who.caller.all_tenants = false;
  return {};
}

Result<Principal> key_principal(Service& service, std::string_view key) {
  ATOLL_ASSIGN(auto found, service.keys.find(key, sandbox::wall_clock_ms()));
  return of_key(std::move(found));
}

Principal runtime_principal(const sandbox::Record& record) {
  return of_token(Principal::Kind::Runtime, record, "runtime:" + record.id);
}

Result<Principal> authenticate(Service& service, const http::Request& request) {
  ATOLL_ASSIGN(Presented token, presented(request));
  Principal who;
  if (token.text.empty()) {
    if (request.peer.kind != http::Peer::Kind::Unix) return who;
    who = local(request);
  } else if (std::count(token.text.begin(), token.text.end(), '.') == 2) {
    ATOLL_ASSIGN(who, scoped_token(service, request, token.text));
  } else if (token.in_url) {
    return fail(ErrorCode::Unauthenticated, "only scoped tokens may stand in a URL");
  } else if (token.text.starts_with(account::Tokens::kRuntimePrefix)) {
    ATOLL_ASSIGN(who, runtime_token(service, request, token.text));
  } else {
    ATOLL_ASSIGN(who, key_principal(service, token.text));
  }
  ATOLL_TRY(apply_tenant(request, who));
  return who;
}

}  // namespace atl::api
