// Puts the configuration together: a flag wins over the environment, the environment over the file,
// the file over the default.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/settings.h"

namespace atl::config {

inline constexpr const char* kDefaultFile = "/etc/atoll/config.toml";

struct Inputs {
  std::string file;                          // empty: kDefaultFile, where there is one
  std::map<std::string, std::string> flags;  // by the setting's key
  // Null for a name that is not set.
  std::function<const char*(const char* name)> environment = nullptr;
};

enum class Source : uint8_t { Default, File, Environment, Flag };
std::string_view to_string(Source source);

struct Value {
  const Setting* setting = nullptr;
  std::string text;
  Source source = Source::Default;
  std::string origin;  // "--pool", "ATOLL_POOL", "/etc/atoll/config.toml:12", or empty
};

struct Loaded {
  Config config;
  std::vector<Value> values;  // in the order of the settings
};

// Fails with the first problem: its place, the setting's name and what is wrong.
Result<Loaded> load(const Inputs& inputs);
// From the process's own environment.
Result<Loaded> load_from_environment(Inputs inputs);

// Everything that is wrong with a file, in its order; empty for a good one.
std::vector<std::string> problems_of_file(const std::string& path);

// The configuration of an empty environment without a file.
Config default_config();

}  // namespace atl::config
