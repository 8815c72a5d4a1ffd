#include "auth/api_key.h"

#include <array>
#include <boost/json.hpp>
#include <limits>

#include "auth/digest.h"
#include "auth/secret_bytes.h"
#include "base/base64url.h"
#include "base/json_escape.h"
#include "base/random_id.h"
#include "http/json.h"

namespace atl::auth {
namespace {

namespace json = boost::json;

constexpr std::string_view kPrefix = "sk-atoll-";
constexpr size_t kIdDigits = 12;
constexpr size_t kSecretChars = 43;
constexpr size_t kHashDigits = 64;
constexpr size_t kMaxNameBytes = 128;
constexpr int64_t kMostInteger = std::numeric_limits<int64_t>::max();
constexpr int64_t kMost32 = std::numeric_limits<uint32_t>::max();

struct RoleName {
  Role role;
  std::string_view name;
};
constexpr std::array kRoles = {
    RoleName{Role::Admin, "admin"},
    RoleName{Role::Member, "member"},
    RoleName{Role::ReadOnly, "read-only"},
};

Result<void> require(bool good, std::string_view field, std::string_view rule) {
  if (good) return {};
  return fail(Error(ErrorCode::InvalidArgument,
                    "an API key's " + std::string(field) + " " + std::string(rule))
                  .with_field(field));
}

bool is_key_id(std::string_view id) { return id.size() == kIdDigits && is_lower_hex(id); }

bool is_key_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || !is_valid_utf8(name)) return false;
  for (char c : name) {
    if ((c >= 0 && c < 0x20) || c == 0x7F) return false;
  }
  return true;
}

Result<Quota> decode_quota(http::JsonObjectReader reader) {
  ATOLL_ASSIGN(int64_t sandboxes, reader.require_integer("sandboxes", 0, kMost32));
  ATOLL_ASSIGN(int64_t cpu, reader.require_integer("cpuMillis", 0, kMost32));
  ATOLL_ASSIGN(int64_t memory, reader.require_integer("memoryBytes", 0, kMostInteger));
  ATOLL_ASSIGN(int64_t disk, reader.require_integer("diskBytes", 0, kMostInteger));
  ATOLL_TRY(reader.finish());
  return Quota{static_cast<uint32_t>(sandboxes), static_cast<uint32_t>(cpu),
               static_cast<uint64_t>(memory), static_cast<uint64_t>(disk)};
}

json::object quota_json(const Quota& quota) {
  return {{"sandboxes", quota.sandboxes},
          {"cpuMillis", quota.cpu_millis},
          {"memoryBytes", quota.memory_bytes},
          {"diskBytes", quota.disk_bytes}};
}

}  // namespace

std::string_view to_string(Role role) {
  for (const RoleName& row : kRoles) {
    if (row.role == role) return row.name;
  }
  return "";
}

std::optional<Role> parse_role(std::string_view text) {
  for (const RoleName& row : kRoles) {
    if (row.name == text) return row.role;
  }
  return std::nullopt;
}

Result<MintedKey> mint_key(const KeyRequest& request, int64_t now_ms) {
  MintedKey minted{.key = {.id = random_id("", kIdDigits),
                           .tenant = request.tenant,
                           .name = request.name,
                           .role = request.role,
                           .quota = request.quota,
                           .rate_per_s = request.rate_per_s,
                           .created_at_ms = now_ms,
                           .expires_at_ms = request.expires_at_ms}};
  minted.text.append(kPrefix).append(minted.key.id).append("-");
  minted.text.append(base64url_encode(as_text(SecretKey::random().bytes())));
  minted.key.secret_hash = sha256_hex(minted.text);
  ATOLL_TRY(check_key(minted.key));
  return minted;
}

std::string_view id_in_key(std::string_view text) {
  if (text.size() != kPrefix.size() + kIdDigits + 1 + kSecretChars) return {};
  std::string_view id = text.substr(kPrefix.size(), kIdDigits);
  bool minted =
      text.starts_with(kPrefix) && is_key_id(id) && text[kPrefix.size() + kIdDigits] == '-';
  return minted ? id : std::string_view();
}

Result<void> check_key(const ApiKey& key) {
  ATOLL_TRY(require(is_key_id(key.id), "id", "has 12 hex digits"));
  ATOLL_TRY(require(is_valid_id(key.tenant), "tenant", "is made of a-z, 0-9 and -"));
  ATOLL_TRY(require(is_key_name(key.name), "name", "has 1 to 128 bytes of printable UTF-8"));
  bool hash = key.secret_hash.size() == kHashDigits && is_lower_hex(key.secret_hash);
  ATOLL_TRY(require(hash, "secretHash", "has 64 hex digits"));
  ATOLL_TRY(require(key.expires_at_ms >= 0 && key.created_at_ms >= 0, "expiresAt",
                    "is a time in milliseconds, or 0 for never"));
  return require(key.quota.memory_bytes <= kMostInteger && key.quota.disk_bytes <= kMostInteger,
                 "quota", "is too large; 0 means unlimited");
}

std::string encode_key(const ApiKey& key) {
  return json::serialize(json::object{{"id", key.id},
                                      {"tenant", key.tenant},
                                      {"name", key.name},
                                      {"role", to_string(key.role)},
                                      {"quota", quota_json(key.quota)},
                                      {"ratePerSecond", key.rate_per_s},
                                      {"createdAt", key.created_at_ms},
                                      {"expiresAt", key.expires_at_ms},
                                      {"secretHash", key.secret_hash}});
}

Result<ApiKey> decode_key(std::string_view text) {
  ATOLL_ASSIGN(http::JsonDocument document, http::JsonDocument::parse(text, 8192));
  ATOLL_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ApiKey key;
  ATOLL_ASSIGN(key.id, reader.require_string("id"));
  ATOLL_ASSIGN(key.tenant, reader.require_string("tenant"));
  ATOLL_ASSIGN(key.name, reader.require_string("name"));
  ATOLL_ASSIGN(std::string role_name, reader.require_string("role"));
  ATOLL_ASSIGN(http::JsonObjectReader quota, reader.require_object("quota"));
  ATOLL_ASSIGN(key.quota, decode_quota(std::move(quota)));
  ATOLL_ASSIGN(int64_t rate, reader.require_integer("ratePerSecond", 0, kMost32));
  ATOLL_ASSIGN(key.created_at_ms, reader.require_integer("createdAt", 0, kMostInteger));
  ATOLL_ASSIGN(key.expires_at_ms, reader.require_integer("expiresAt", 0, kMostInteger));
  ATOLL_ASSIGN(key.secret_hash, reader.require_string("secretHash"));
  ATOLL_TRY(reader.finish());
  auto role = parse_role(role_name);
  ATOLL_TRY(require(role.has_value(), "role", "is admin, member or read-only"));
  key.role = *role;
  key.rate_per_s = static_cast<uint32_t>(rate);
  ATOLL_TRY(check_key(key));
  return key;
}

}  // namespace atl::auth
