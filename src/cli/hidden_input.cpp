#include "cli/hidden_input.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#include "cli/signals.h"

namespace atl::cli {
namespace {

// Does not show what is typed, for as long as it lives.
class NoEcho {
 public:
  NoEcho() {
    if (tcgetattr(STDIN_FILENO, &saved_) != 0) return;
    termios quiet = saved_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    quiet.c_lflag |= ECHONL;
    active_ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) == 0;
  }
  ~NoEcho() {
    if (active_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved_);
  }
  NoEcho(const NoEcho&) = delete;
  NoEcho& operator=(const NoEcho&) = delete;

 private:
  termios saved_{};
  bool active_ = false;
};

Result<void> wait_for_input(const SignalWatch& signals) {
  pollfd polled[] = {{STDIN_FILENO, POLLIN, 0}, {signals.fd(), POLLIN, 0}};
  while (poll(polled, 2, -1) < 0) {
    if (errno != EINTR) return fail_errno("poll", "standard input");
  }
  if (polled[1].revents != 0) return fail(ErrorCode::Cancelled, "nothing was entered");
  return {};
}

Result<std::string> read_until(bool line, size_t limit) {
  SignalWatch signals;
  std::string text;
  char block[4096];
  while (!line || !text.ends_with('\n')) {
    ATOLL_TRY(wait_for_input(signals));
    ssize_t size = read(STDIN_FILENO, block, sizeof block);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("read", "standard input");
    if (size == 0) break;
    text.append(block, static_cast<size_t>(size));
    if (text.size() > limit) {
      return fail(ErrorCode::TooLarge, fmt::format("more than {} bytes were given", limit));
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Result<std::string> read_hidden(const std::string& prompt, size_t limit) {
  if (isatty(STDIN_FILENO) != 1) return read_until(false, limit);
  fmt::print(stderr, "{}", prompt);
  fflush(stderr);
  NoEcho quiet;
  auto line = read_until(true, limit);
  if (!line) fmt::print(stderr, "\n");
  return line;
}

}  // namespace atl::cli
