#include "serve/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <string>

namespace atl::serve {
namespace {

std::string take_variable(const char* name) {
  const char* text = getenv(name);
  std::string value = text == nullptr ? "" : text;
  unsetenv(name);
  return value;
}

int64_t to_number(const std::string& text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Notifier Notifier::from_environment() {
  Notifier notifier;
  std::string path = take_variable("NOTIFY_SOCKET");
  std::string interval = take_variable("WATCHDOG_USEC");
  std::string process = take_variable("WATCHDOG_PID");
  bool known = path.starts_with('/') || path.starts_with('@');
  if (!known || path.size() >= sizeof notifier.address_.sun_path) return notifier;
  notifier.socket_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  timeval patience{.tv_sec = 1, .tv_usec = 0};
  setsockopt(notifier.socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  notifier.address_.sun_family = AF_UNIX;
  path.copy(notifier.address_.sun_path, path.size());
  if (path[0] == '@') notifier.address_.sun_path[0] = '\0';  // the abstract name space
  notifier.address_size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (process.empty() || to_number(process) == getpid())
    notifier.watchdog_ = std::chrono::microseconds(to_number(interval));
  return notifier;
}

void Notifier::send(std::string_view state) const {
  if (!socket_.valid()) return;
  (void)sendto(socket_.get(), state.data(), state.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address_), address_size_);
}

}  // namespace atl::serve
