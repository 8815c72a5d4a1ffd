// Every setting, as data. The file's keys, the environment's names, the flags of `atoll serve`,
// `atoll config show` and the table in docs/configuration.md all come from this list.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "config/config.h"

namespace atl::config {

enum class Kind : uint8_t {
  Name,      // letters, digits, '.', '_' and '-'
  Text,      // anything
  Choice,    // one of `choices`
  Path,      // absolute, where it does not come from a flag
  File,      // a path, or empty
  Endpoint,  // ADDRESS:PORT, or none
  Url,       // http:// or https://, or empty
  Count,
  Switch,    // true or false
  Size,      // "512m"; 0 for no limit
  Cores,     // "0.5"; 0 for no limit
  Duration,  // "1h30m", in whole seconds; 0 or never
};

using Slot = std::variant<std::string*, uint32_t*, uint64_t*, bool*>;

struct Setting {
  std::string_view key;  // in the file, with dots between tables: "limits.default.cpu"
  Kind kind;
  std::string_view fallback;  // as one would write it
  std::string_view help;
  Slot (*slot)(Config& config);
  std::span<const std::string_view> choices = {};
  bool secret = false;  // never shown
};

std::span<const Setting> all_settings();
const Setting* find_setting(std::string_view key);

std::string flag_of(const Setting& setting);         // "--limits-default-cpu"
std::string environment_of(const Setting& setting);  // "ATOLL_LIMITS_DEFAULT_CPU"
// How help shows a value: "SIZE", "keep|stop".
std::string value_name(const Setting& setting);

// Reads `text` as the setting's kind wants it and puts it into `config`.
Result<void> assign(const Setting& setting, std::string_view text, Config& config);
// The same without keeping it.
Result<void> check(const Setting& setting, std::string_view text);

// The table of docs/configuration.md.
std::string settings_markdown();

}  // namespace atl::config
