// What must exist before the processes start: directories with the right owners, sockets, the key.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "config/config.h"
#include "serve/notify.h"

namespace atl::serve {

struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  bool missing = false;  // there is none of that name: ids that nobody else uses
};
Account find_account(const std::string& name);

struct Prepared {
  Account account;
  Account egress;  // another one, so that neither can touch the other
  std::string api_key;
  std::string base_url;             // what URLs in answers begin with; empty without a port
  std::vector<UniqueFd> listeners;  // outlive a restart of the server: nobody is refused meanwhile
  UniqueFd lock;
  Notifier notifier;
};

Result<Prepared> prepare(const config::Config& config);

// The directory that criu is unpacked in: the one that is set, or where it is usually found; empty
// where there is none.
std::string find_criu(const std::string& set);

}  // namespace atl::serve
