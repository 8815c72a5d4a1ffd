#include "quiet.h"

#include <unistd.h>

#include <filesystem>

#include "stats.h"

namespace atl::bench {
namespace {

constexpr double kQuietSeconds = 30;

// Each slot has one. Walking /proc instead would fill the slab that is about to be measured.
size_t agent_sockets(const Workspace& workspace) {
  std::error_code error;
  std::filesystem::directory_iterator it(workspace.run_dir() + "/agents", error), end;
  return static_cast<size_t>(std::distance(it, end));
}

}  // namespace

void wait_quiet(const Workspace& workspace) {
  Stopwatch watch;
  size_t last = agent_sockets(workspace);
  for (int same = 0; same < 5 && watch.seconds() < kQuietSeconds;) {
    usleep(200'000);
    size_t now = agent_sockets(workspace);
    same = now == last ? same + 1 : 0;
    last = now;
  }
}

}  // namespace atl::bench
