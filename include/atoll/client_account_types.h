// What the client says of keys, secrets, tokens and usage.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "atoll/types.h"

namespace atl {

// Who the server takes the caller for.
struct Identity {
  std::string actor;  // "uid:0", "key:..."
  std::string tenant;
  std::string role;          // "admin", "member", "read-only"
  bool all_tenants = false;  // sees what belongs to any
  std::string json;          // as the server sent it
};

// Together, of all sandboxes that a key has made and that are not deleted. 0: no limit.
struct KeyQuota {
  uint32_t sandboxes = 0;
  uint32_t cpu_millis = 0;
  uint64_t memory_bytes = 0;  // goes as whole MiB
  uint64_t disk_bytes = 0;    // goes as whole GiB
};

struct KeyInfo {
  std::string id;
  std::string tenant;
  std::string name;
  std::string role;
  KeyQuota quota;
  KeyQuota used;
  uint64_t rate_per_second = 0;  // 0: no limit
  std::string created_at;
  std::string expires_at;  // empty: never
  std::string json;        // as the server sent it
};

struct CreateKeyRequest {
  std::string name = {};
  std::string tenant = {};  // empty: the caller's
  std::string role = {};    // empty: "member"
  KeyQuota quota = {};
  uint32_t rate_per_second = 0;
  std::optional<std::chrono::seconds> lifetime = {};
};

struct CreatedKey {
  KeyInfo info;      // its `json` has the key too
  std::string text;  // the key itself, which the server does not know any more
};

struct SecretInfo {
  std::string name;
  std::string created_at;
  std::string updated_at;
  std::string json;  // as the server sent it
};

struct TokenRequest {
  std::string scope = {};    // "read-only", "project" or "session"
  std::string session = {};  // of the scope "session": the terminal's id
  std::optional<std::chrono::minutes> lifetime = {};
};

struct Token {
  std::string text;
  std::string scope;
  std::string expires_at;
  std::string json;  // as the server sent it
};

// What has been used so far.
struct Metered {
  double cpu_seconds = 0;
  double running_seconds = 0;
  double memory_gb_seconds = 0;  // of the limit, while it ran
};

struct SandboxUsage {
  Metered metered;
  std::optional<Usage> present;  // none while it does not run
  std::string json;              // as the server sent it
};

struct KeyUsage {
  std::string tenant;
  std::string key_id;  // empty: made without a key, on the server's socket
  uint64_t active_sandboxes = 0;
  uint64_t total_sandboxes = 0;
  Metered metered;
};

struct AccountUsage {
  std::vector<KeyUsage> keys;
  uint64_t active_sandboxes = 0;
  uint64_t total_sandboxes = 0;
  Metered metered;
  std::string json;  // as the server sent it
};

}  // namespace atl
