#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "auth/secret_bytes.h"

namespace atl::auth {

// What a preview token is good for. Nothing of it is stored: the link, the sandbox's generation and
// the port are those that the server knows when the token comes back, so removing the link or
// deleting the sandbox ends it.
struct PreviewGrant {
  std::string link;  // "pv-..."
  std::string sandbox;
  std::string generation;
  uint16_t port = 0;
};

// A token in a URL buys a cookie, and not the other way round.
enum class PreviewPlace : char { Url = 'u', Cookie = 'c' };

// "LINK.uEXPIRES.MAC": an HMAC-SHA256 over all of it. `key` is MasterKey::derive(kPreviewLabel).
std::string preview_token(const SecretKey& key, const PreviewGrant& grant, PreviewPlace place,
                          int64_t expires_at_s);

// Which link a token names; none for a text that is no such token.
std::optional<std::string> link_of_preview_token(std::string_view token);

enum class PreviewVerdict { Good, Expired, Wrong };
PreviewVerdict check_preview_token(std::string_view token, const SecretKey& key,
                                   const PreviewGrant& grant, PreviewPlace place, int64_t now_s);

// For all ports of one life of a sandbox: "tt-" and 43 characters, as runtime_token() makes them.
std::string traffic_token(const SecretKey& key, std::string_view sandbox,
                          std::string_view generation);

}  // namespace atl::auth
