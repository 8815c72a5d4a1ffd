#include "auth/jwt.h"

#include <boost/json.hpp>

#include "base/base64url.h"

namespace atl::auth {
namespace {

namespace json = boost::json;

constexpr int64_t kClockSkewSeconds = 30;
constexpr int64_t kLatestTime = 253402300799;  // the end of the year 9999

tl::unexpected<Error> refuse(std::string_view why) {
  return fail(ErrorCode::Unauthenticated, "invalid token: " + std::string(why));
}

struct Parts {
  std::string_view header;
  std::string_view payload;
  std::string_view signature;
  std::string_view signed_text;  // header and payload with the dot between
};

Result<Parts> split(std::string_view token) {
  if (token.size() > kMaxTokenBytes) return refuse("it is too long");
  size_t first = token.find('.');
  size_t second = first == token.npos ? token.npos : token.find('.', first + 1);
  if (second == token.npos || token.find('.', second + 1) != token.npos) {
    return refuse("it does not have three parts");
  }
  return Parts{token.substr(0, first), token.substr(first + 1, second - first - 1),
               token.substr(second + 1), token.substr(0, second)};
}

Result<http::JsonDocument> decode_object(std::string_view part) {
  auto bytes = base64url_decode(part);
  if (!bytes) return refuse("it is not base64url");
  auto document = http::JsonDocument::parse(*bytes, kMaxTokenBytes);
  if (!document || !document->value().is_object()) return refuse("it is not a JSON object");
  return std::move(*document);
}

bool is_text(const json::value& value, std::string_view expected) {
  return value.is_string() && std::string_view(value.get_string()) == expected;
}

// The key that the header names, if the header is one that this program writes.
Result<const VerifyKey*> key_of(const json::object& header, const KeySet& keys) {
  const json::value* algorithm = header.if_contains("alg");
  if (algorithm == nullptr || !is_text(*algorithm, "EdDSA")) return refuse("alg must be EdDSA");
  const json::value* type = header.if_contains("typ");
  if (type != nullptr && !is_text(*type, "JWT")) return refuse("typ must be JWT");
  const json::value* kid = header.if_contains("kid");
  if (kid == nullptr || !kid->is_string()) return refuse("kid is required");
  if (header.size() != (type == nullptr ? 2 : 3)) return refuse("unknown header parameter");
  const VerifyKey* key = keys.find(std::string_view(kid->get_string()));
  if (key == nullptr) return refuse("unknown key");
  return key;
}

Result<int64_t> time_claim(http::JsonObjectReader& claims, std::string_view name) {
  auto time = claims.require_integer(name, 0, kLatestTime);
  if (!time) return refuse(std::string(name) + " must be a time in seconds");
  return *time;
}

Result<void> text_claim(http::JsonObjectReader& claims, std::string_view name,
                        std::string_view expected) {
  auto text = claims.require_string(name);
  if (!text || *text != expected) return refuse("wrong " + std::string(name));
  return {};
}

}  // namespace

Result<std::string> sign_jwt(const SigningKey& key, std::string_view claims) {
  std::string header = R"({"alg":"EdDSA","typ":"JWT","kid":")" + key.kid() + "\"}";
  std::string token = base64url_encode(header) + "." + base64url_encode(claims);
  token.append("." + base64url_encode(key.sign(token)));
  if (token.size() > kMaxTokenBytes) {
    return fail(ErrorCode::TooLarge, "the token's claims are too long");
  }
  return token;
}

Result<http::JsonDocument> verify_jwt(std::string_view token, const KeySet& keys) {
  ATOLL_ASSIGN(Parts parts, split(token));
  ATOLL_ASSIGN(http::JsonDocument header, decode_object(parts.header));
  ATOLL_ASSIGN(const VerifyKey* key, key_of(header.value().get_object(), keys));
  auto signature = base64url_decode(parts.signature);
  if (!signature || !key->verify(parts.signed_text, *signature)) return refuse("bad signature");
  return decode_object(parts.payload);
}

Result<TokenTimes> check_registered_claims(http::JsonObjectReader& claims,
                                           const ClaimRules& rules) {
  ATOLL_TRY(text_claim(claims, "iss", rules.issuer));
  ATOLL_TRY(text_claim(claims, "aud", rules.audience));
  TokenTimes times;
  ATOLL_ASSIGN(times.issued_at_s, time_claim(claims, "iat"));
  ATOLL_ASSIGN(times.expires_at_s, time_claim(claims, "exp"));
  int64_t valid_from = times.issued_at_s;
  if (claims.has("nbf")) {
    ATOLL_ASSIGN(int64_t not_before, time_claim(claims, "nbf"));
    valid_from = std::max(valid_from, not_before);
  }
  if (valid_from > rules.now_s + kClockSkewSeconds) return refuse("it is not valid yet");
  if (times.expires_at_s <= times.issued_at_s ||
      times.expires_at_s - times.issued_at_s > rules.max_lifetime_s) {
    return refuse("its lifetime is not one that is given out");
  }
  if (rules.now_s >= times.expires_at_s + rules.grace_s) {
    return fail(ErrorCode::Unauthenticated, "the token has expired");
  }
  return times;
}

}  // namespace atl::auth
