#include "auth/scoped_token.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "auth/jwt.h"
#include "base/json_escape.h"
#include "base/random_id.h"

namespace atl::auth {
namespace {

namespace json = boost::json;

constexpr std::string_view kIssuer = "atoll";
constexpr std::string_view kAudience = "atoll-runtime";
constexpr std::string_view kType = "sidecar";
constexpr int64_t kDefaultMinutes = 5;
constexpr int64_t kMaxMinutes = 15;
constexpr size_t kMaxPartBytes = 128;

struct ScopeName {
  TokenScope scope;
  std::string_view name;
};
constexpr std::array kScopes = {
    ScopeName{TokenScope::Session, "session"},
    ScopeName{TokenScope::Project, "project"},
    ScopeName{TokenScope::ReadOnly, "read-only"},
};

tl::unexpected<Error> refuse() {
  return fail(ErrorCode::Unauthenticated, "invalid token: wrong claims");
}

Result<void> check_part(std::string_view field, std::string_view text) {
  if (!text.empty() && text.size() <= kMaxPartBytes && is_valid_utf8(text)) return {};
  return fail(Error(ErrorCode::InvalidArgument,
                    "a token's " + std::string(field) + " has 1 to 128 bytes of UTF-8")
                  .with_field(field));
}

Result<void> check_request(const ScopedTokenRequest& request) {
  ATOLL_TRY(check_part("tenant", request.tenant));
  ATOLL_TRY(check_part("sandbox", request.sandbox));
  ATOLL_TRY(check_part("generation", request.generation));
  if (request.session) ATOLL_TRY(check_part("session", *request.session));
  return {};
}

std::string claims_json(const ScopedToken& token) {
  json::object claims{
      {"iss", kIssuer},
      {"aud", kAudience},
      {"sub", token.tenant},
      {"sbx", token.sandbox},
      {"gen", token.generation},
      {"scope", to_string(token.scope)},
      {"typ", kType},
      {"jti", token.id},
      {"iat", token.issued_at_ms / 1000},
      {"exp", token.expires_at_ms / 1000},
  };
  if (token.session) claims["sid"] = *token.session;
  return json::serialize(claims);
}

Result<ScopedToken> read_claims(http::JsonObjectReader& claims) {
  ScopedToken token;
  ATOLL_ASSIGN(token.tenant, claims.require_string("sub"));
  ATOLL_ASSIGN(token.sandbox, claims.require_string("sbx"));
  ATOLL_ASSIGN(token.generation, claims.require_string("gen"));
  ATOLL_ASSIGN(token.session, claims.optional_string("sid"));
  ATOLL_ASSIGN(token.id, claims.require_string("jti"));
  ATOLL_ASSIGN(std::string type, claims.require_string("typ"));
  ATOLL_ASSIGN(std::string scope_name, claims.require_string("scope"));
  ATOLL_TRY(claims.finish());
  auto scope = parse_token_scope(scope_name);
  if (type != kType || !scope) return refuse();
  token.scope = *scope;
  return token;
}

}  // namespace

std::string_view to_string(TokenScope scope) {
  for (const ScopeName& row : kScopes) {
    if (row.scope == scope) return row.name;
  }
  return "";
}

std::optional<TokenScope> parse_token_scope(std::string_view text) {
  for (const ScopeName& row : kScopes) {
    if (row.name == text) return row.scope;
  }
  return std::nullopt;
}

Result<void> ScopedToken::check_target(std::string_view sandbox_id,
                                       std::string_view current_generation) const {
  if (sandbox != sandbox_id) {
    return fail(ErrorCode::PermissionDenied, "the token is for another sandbox");
  }
  if (generation != current_generation) {
    return fail(ErrorCode::Unauthenticated,
                "the token is from before the sandbox was started anew; ask for a new one");
  }
  return {};
}

Result<MintedToken> mint_scoped_token(const SigningKey& key, const ScopedTokenRequest& request,
                                      int64_t now_ms) {
  ATOLL_TRY(check_request(request));
  int64_t minutes =
      std::clamp<int64_t>(request.ttl_minutes.value_or(kDefaultMinutes), 1, kMaxMinutes);
  int64_t issued_at_ms = now_ms / 1000 * 1000;
  ScopedToken token{.tenant = request.tenant,
                    .sandbox = request.sandbox,
                    .generation = request.generation,
                    .scope = request.scope,
                    .session = request.session,
                    .id = random_id("", 32),
                    .issued_at_ms = issued_at_ms,
                    .expires_at_ms = issued_at_ms + minutes * 60'000};
  ATOLL_ASSIGN(std::string text, sign_jwt(key, claims_json(token)));
  return MintedToken{std::move(text), std::move(token)};
}

Result<ScopedToken> verify_scoped_token(std::string_view text, const KeySet& keys, int64_t now_ms,
                                        int64_t grace_ms) {
  ATOLL_ASSIGN(http::JsonDocument document, verify_jwt(text, keys));
  ATOLL_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader claims(*object);
  ATOLL_ASSIGN(TokenTimes times,
               check_registered_claims(claims, {.issuer = kIssuer,
                                                .audience = kAudience,
                                                .now_s = now_ms / 1000,
                                                .max_lifetime_s = kMaxMinutes * 60,
                                                .grace_s = grace_ms / 1000}));
  auto token = read_claims(claims);
  if (!token) return refuse();
  token->issued_at_ms = times.issued_at_s * 1000;
  token->expires_at_ms = times.expires_at_s * 1000;
  return token;
}

}  // namespace atl::auth
