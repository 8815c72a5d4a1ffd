#include "base/failpoint.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <string_view>

namespace atl {

void failpoint(const char* name) {
  static const char* const armed = getenv("ATOLL_FAILPOINT");
  if (armed == nullptr) return;
  std::string_view wanted = armed;
  size_t colon = wanted.find(':');
  if (wanted.substr(0, colon) != name) return;
  if (colon != wanted.npos && wanted.substr(colon) == ":family") kill(getppid(), SIGKILL);
  kill(getpid(), SIGKILL);
}

}  // namespace atl
