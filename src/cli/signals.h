#pragma once

#include <optional>

namespace atl::cli {

// Turns SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGWINCH into something to poll(), and ignores
// SIGPIPE, for as long as it lives. At most one at a time. Who asks a third time to end the
// program, while it is stuck somewhere, gets that at once.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  int fd() const;
  // The oldest signal not taken yet.
  std::optional<int> next();
};

}  // namespace atl::cli
