// The three standard streams of a command about to start: our ends and its ends.
#pragma once

#include "agent/spawn.h"

namespace atl::agent {

struct Streams {
  UniqueFd our_stdin;
  UniqueFd our_stdout;
  UniqueFd our_stderr;
  UniqueFd child_stdin;  // invalid: /dev/null
  UniqueFd child_stdout;
  UniqueFd child_stderr;  // invalid: the same as stdout
};

Result<Streams> open_streams(const wire::ExecRequest& request, const Account& account);

}  // namespace atl::agent
