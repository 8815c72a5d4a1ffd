#include "cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "cli/raw_terminal.h"

namespace atl::cli {
namespace {

constexpr std::array kWatched = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
constexpr int kPatience = 3;

// A handler can reach nothing but globals.
int pipe_ends[2] = {-1, -1};
std::atomic<int> end_requests = 0;
std::array<struct sigaction, kWatched.size()> old_actions;
struct sigaction old_pipe_action;

void on_signal(int number) {
  int saved = errno;
  if (number != SIGWINCH && ++end_requests >= kPatience) {
    RawTerminal::restore_now();
    _exit(128 + number);
  }
  auto byte = static_cast<unsigned char>(number);
  [[maybe_unused]] ssize_t ignored = write(pipe_ends[1], &byte, 1);
  errno = saved;
}

}  // namespace

SignalWatch::SignalWatch() {
  end_requests = 0;
  if (pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) pipe_ends[0] = pipe_ends[1] = -1;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kWatched.size(); i++) sigaction(kWatched[i], &action, &old_actions[i]);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, &old_pipe_action);
}

SignalWatch::~SignalWatch() {
  for (size_t i = 0; i < kWatched.size(); i++) sigaction(kWatched[i], &old_actions[i], nullptr);
  sigaction(SIGPIPE, &old_pipe_action, nullptr);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  pipe_ends[0] = pipe_ends[1] = -1;
}

int SignalWatch::fd() const { return pipe_ends[0]; }

std::optional<int> SignalWatch::next() {
  unsigned char byte = 0;
  if (read(pipe_ends[0], &byte, 1) != 1) return std::nullopt;
  return byte;
}

}  // namespace atl::cli
