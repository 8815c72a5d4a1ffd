// Tells the service manager that started us how we are, as sd_notify(3) does.
#pragma once

#include <sys/un.h>

#include <chrono>
#include <string_view>

#include "base/unique_fd.h"

namespace atl::serve {

class Notifier {
 public:
  // Takes NOTIFY_SOCKET and the watchdog's variables out of the environment: our children must not
  // speak for us. Where they are not set, nobody listens and nothing is sent.
  static Notifier from_environment();

  // "READY=1", "STOPPING=1", "WATCHDOG=1". A manager that does not listen is no failure of ours.
  void send(std::string_view state) const;
  // Within what time a sign of life is expected; 0: never.
  std::chrono::microseconds watchdog() const { return watchdog_; }

 private:
  UniqueFd socket_;
  sockaddr_un address_{};
  socklen_t address_size_ = 0;
  std::chrono::microseconds watchdog_{0};
};

}  // namespace atl::serve
