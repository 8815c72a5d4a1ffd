// The flags that make up a network policy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atoll/network_policy.h"
#include "cli/command.h"

namespace atl::cli {

struct NetworkFlags {
  std::string mode;
  std::string file;
  std::vector<std::string> allow;
  std::vector<std::string> deny;
  std::vector<std::string> inject;

  // None where no flag was given.
  Result<std::optional<NetworkPolicy>> policy() const;
};
std::vector<Option> network_flags(NetworkFlags& flags);

// "-" is standard input.
Result<NetworkPolicy> read_policy_file(const std::string& path);

}  // namespace atl::cli
