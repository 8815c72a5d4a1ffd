#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::config {

// What stands in the file, before anybody asks whether it may.
struct FileValue {
  enum class Type : uint8_t { Text, Integer, Decimal, Boolean, Other };
  std::string key;  // with dots between tables
  Type type = Type::Other;
  std::string text;
  int line = 0;
};

Result<std::string> read_config_file(const std::string& path);
// In the file's order. Fails with "path:line: why"; `path` is for that only.
Result<std::vector<FileValue>> parse_toml(std::string_view text, const std::string& path);

}  // namespace atl::config
