// What is known of a sandbox and kept in the database.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "atoll/result.h"
#include "atoll/types.h"

namespace atl::sandbox {

enum class Status : uint8_t { Running, Paused, Stopped, Failed };
std::string_view to_string(Status status);

// What a caller asks for.
struct Spec {
  std::string name;
  std::string template_name = "base";
  std::map<std::string, std::string> env;
  Limits limits;
  Profile profile = Profile::Dev;
  std::string user = "root";
  std::map<std::string, std::string> metadata;
  std::string idempotency_key;
  uint32_t max_lifetime_s = 0;  // 0: never
  uint32_t idle_timeout_s = 0;
  bool ephemeral = false;
  bool from_pool = true;
};

struct Record {
  std::string id;
  Spec spec;
  Status status = Status::Running;
  std::string reason;  // why it is not running
  std::map<std::string, std::string> backend_state;
  int64_t created_at_ms = 0;
  int64_t started_at_ms = 0;
};

std::string encode_record(const Record& record);
Result<Record> decode_record(std::string_view text);

}  // namespace atl::sandbox
