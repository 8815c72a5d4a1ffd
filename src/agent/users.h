// Account look-up without NSS: /etc/passwd and /etc/group as plain text, with bounds, because the
// sandbox may have written anything into them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::agent {

struct Account {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string name;
  std::string home = "/";
};

// A name, "1000" or "1000:1000". Ids must lie in the sandbox's own range.
Result<Account> find_account(std::string_view user);
// The name of an id, or the id in digits.
std::string user_name(uint32_t uid);
std::string group_name(uint32_t gid);

}  // namespace atl::agent
