#pragma once

#include "server_fixture.h"

namespace atl::bench {

// Until the pool and the reserve no longer change, or for a while at most.
void wait_quiet(const Workspace& workspace);

}  // namespace atl::bench
