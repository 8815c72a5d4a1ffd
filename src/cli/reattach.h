// Making a broken connection to a process again. Its output and its end are kept by its sandbox, so
// nothing is lost while the server is restarted.
#pragma once

#include <string>

#include "atoll/client.h"

namespace atl::cli {

struct ReattachPlan {
  std::string sandbox;
  int32_t pid = 0;
  OutputOffsets offsets;
  bool resume_input = false;
  int interrupt_fd = -1;   // something to read there ends the attempts with Cancelled
  bool only_once = false;  // somebody has asked to end already: no second attempt
};

// Whether an error means that the server is away, which may pass.
bool is_server_away(const Error& error);

// Tries again for a while. `cause` is what broke the connection: it is returned where it is not of
// the kind that passes.
Result<Attachment> reattach(Client& client, const ReattachPlan& plan, Error cause);

// The same for the server's events.
Result<LogReader> reopen_logs(Client& client, const ReattachPlan& plan, Error cause);

}  // namespace atl::cli
