#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "auth/quota.h"
#include "base/result.h"

namespace atl::auth {

enum class Role { Admin, Member, ReadOnly };
// "admin", "member", "read-only".
std::string_view to_string(Role role);
std::optional<Role> parse_role(std::string_view text);

// What the server keeps of an API key: never the key itself.
struct ApiKey {
  std::string id;  // 12 hex digits; not secret, names the key in lists and the audit log
  std::string tenant;
  std::string name;
  Role role = Role::Member;
  Quota quota;
  uint32_t rate_per_s = 0;  // 0: no limit
  int64_t created_at_ms = 0;
  int64_t expires_at_ms = 0;  // 0: never
  std::string secret_hash;    // SHA-256 of the whole key in hex; its 256 random bits need no salt
  bool operator==(const ApiKey&) const = default;
};

struct KeyRequest {
  std::string tenant;
  std::string name;
  Role role = Role::Member;
  Quota quota = {};
  uint32_t rate_per_s = 0;
  int64_t expires_at_ms = 0;
};

struct MintedKey {
  ApiKey key;
  std::string text;  // to be shown once and kept nowhere
};

// "sk-atoll-", the id, "-" and 43 characters for 32 random bytes. InvalidArgument where the request
// does not pass check_key().
Result<MintedKey> mint_key(const KeyRequest& request, int64_t now_ms);
// The id within a text of the form above, wherever the key is from; empty for any other text.
std::string_view id_in_key(std::string_view text);

// InvalidArgument with the field at fault: the tenant is an id, the name has 1 to 128 bytes of
// UTF-8 without control characters, numbers are within what JSON can carry.
Result<void> check_key(const ApiKey& key);

// For storage. Unknown, missing and doubled fields are refused with InvalidArgument.
std::string encode_key(const ApiKey& key);
Result<ApiKey> decode_key(std::string_view text);

}  // namespace atl::auth
