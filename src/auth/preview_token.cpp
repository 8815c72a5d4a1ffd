#include "auth/preview_token.h"

#include <charconv>
#include <initializer_list>

#include "auth/digest.h"
#include "base/base64url.h"

namespace atl::auth {
namespace {

constexpr std::string_view kLinkPrefix = "pv-";
constexpr size_t kMostBytes = 256;

struct Parts {
  std::string_view link;
  char place = 0;
  int64_t expires_at_s = 0;
  std::string_view mac;
};

std::optional<Parts> split(std::string_view token) {
  if (token.size() > kMostBytes || !token.starts_with(kLinkPrefix)) return std::nullopt;
  size_t first = token.find('.');
  size_t second = first == token.npos ? first : token.find('.', first + 1);
  if (second == token.npos || second - first < 3) return std::nullopt;
  Parts parts;
  parts.link = token.substr(0, first);
  parts.place = token[first + 1];
  std::string_view digits = token.substr(first + 2, second - first - 2);
  auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), parts.expires_at_s);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  parts.mac = token.substr(second + 1);
  return parts;
}

// Lengths keep the parts from running into each other.
std::string joined(std::initializer_list<std::string_view> parts) {
  std::string message;
  for (std::string_view part : parts) {
    message.append(std::to_string(part.size())).append(":").append(part);
  }
  return message;
}

std::string mac_of(const SecretKey& key, const PreviewGrant& grant, char place,
                   int64_t expires_at_s) {
  std::string message =
      joined({"preview", grant.link, grant.sandbox, grant.generation, std::to_string(grant.port),
              std::string_view(&place, 1), std::to_string(expires_at_s)});
  return base64url_encode(as_text(hmac_sha256(key, message)));
}

}  // namespace

std::string preview_token(const SecretKey& key, const PreviewGrant& grant, PreviewPlace place,
                          int64_t expires_at_s) {
  char letter = static_cast<char>(place);
  return grant.link + "." + letter + std::to_string(expires_at_s) + "." +
         mac_of(key, grant, letter, expires_at_s);
}

std::optional<std::string> link_of_preview_token(std::string_view token) {
  auto parts = split(token);
  if (!parts) return std::nullopt;
  return std::string(parts->link);
}

PreviewVerdict check_preview_token(std::string_view token, const SecretKey& key,
                                   const PreviewGrant& grant, PreviewPlace place, int64_t now_s) {
  auto parts = split(token);
  if (!parts || parts->link != grant.link || parts->place != static_cast<char>(place)) {
    return PreviewVerdict::Wrong;
  }
  std::string expected = mac_of(key, grant, parts->place, parts->expires_at_s);
  if (!same_secret(parts->mac, expected)) return PreviewVerdict::Wrong;
  return parts->expires_at_s <= now_s ? PreviewVerdict::Expired : PreviewVerdict::Good;
}

std::string traffic_token(const SecretKey& key, std::string_view sandbox,
                          std::string_view generation) {
  return "tt-" +
         base64url_encode(as_text(hmac_sha256(key, joined({"traffic", sandbox, generation}))));
}

}  // namespace atl::auth
