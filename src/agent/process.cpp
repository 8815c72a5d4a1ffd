#include "agent/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>

namespace atl::agent {

// A reader that is this far behind makes the command wait. Less than the log keeps, so a reader
// that is there never loses a byte.
static constexpr uint64_t kMaxBacklog = 1u << 20;
static constexpr ssize_t kFullPipe = 60 << 10;
static constexpr int kLargePipe = 256 << 10;

void OutputPipe::open(UniqueFd fd) {
  fd_ = std::move(fd);
  loop_.add(fd_.get(), EPOLLIN, this);
}

void OutputPipe::close() {
  if (!fd_.valid()) return;
  loop_.remove(fd_.get(), this);
  fd_.reset();
}

// Most commands print nothing on one of their streams: the log allocates only for bytes that came.
ssize_t OutputPipe::read_first() {
  static char scratch[4096];
  ssize_t size = read(fd_.get(), scratch, sizeof scratch);
  for (ssize_t at = 0; at < size;) {
    std::span<char> space = log.prepare();
    size_t part = std::min(space.size(), static_cast<size_t>(size - at));
    memcpy(space.data(), scratch + at, part);
    log.commit(part);
    at += static_cast<ssize_t>(part);
  }
  return size;
}

ssize_t OutputPipe::read_more() {
  std::span<char> space = log.prepare();
  ssize_t size = read(fd_.get(), space.data(), space.size());
  if (size > 0) log.commit(static_cast<size_t>(size));
  // A pipe that comes full belongs to a long output: fewer, larger reads from here on.
  if (size >= kFullPipe && !enlarged_) {
    enlarged_ = true;
    fcntl(fd_.get(), F_SETPIPE_SZ, kLargePipe);
  }
  return size;
}

bool OutputPipe::read_some() {
  ssize_t size = log.end() == 0 ? read_first() : read_more();
  if (size > 0) return true;
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  close();  // end of file; EIO is how a terminal says it
  return false;
}

void OutputPipe::on_ready(uint32_t) {
  read_some();
  owner_.output_arrived();
}

void OutputPipe::drain() {
  // Bounded: a background process may keep writing for ever.
  for (int i = 0; i < 64 && fd_.valid() && read_some(); i++) {
  }
}

void OutputPipe::set_paused(bool paused) {
  if (paused == paused_ || !fd_.valid()) return;
  paused_ = paused;
  loop_.modify(fd_.get(), paused ? 0 : static_cast<uint32_t>(EPOLLIN), this);
}

void Process::forget(ProcessObserver* observer) {
  std::erase(observers_, observer);
  update_flow();
}

void Process::output_arrived() {
  // Observers may leave while being told.
  auto observers = observers_;
  for (ProcessObserver* observer : observers) observer->on_output();
  update_flow();
}

void Process::take_input(const ProcessObserver* owner) {
  for (ProcessObserver* observer : observers_) {
    if (observer != owner) observer->on_input_taken();
  }
}

void Process::close_input() {
  take_input(nullptr);
  stdin_fd.reset();
}

void Process::update_flow() {
  uint64_t worst = 0;
  for (ProcessObserver* observer : observers_) worst = std::max(worst, observer->backlog());
  stdout_pipe.set_paused(worst > kMaxBacklog);
  stderr_pipe.set_paused(worst > kMaxBacklog);
}

void Process::ended(int status, uint64_t cpu_us) {
  stdout_pipe.drain();
  stderr_pipe.drain();
  info.running = false;
  info.ended_at_ms = wall_clock_ms();
  info.cpu_us = cpu_us;
  info.stdout_bytes = stdout_pipe.log.end();
  info.stderr_bytes = stderr_pipe.log.end();
  if (WIFSIGNALED(status)) {
    info.exit_signal = WTERMSIG(status);
    info.exit_code = 128 + info.exit_signal;
  } else {
    info.exit_code = WEXITSTATUS(status);
  }
  if (info.timed_out) info.exit_code = 124;  // as timeout(1) reports it
  close_input();
  auto observers = observers_;
  for (ProcessObserver* observer : observers) observer->on_output();
  for (ProcessObserver* observer : observers) observer->on_exit();
}

}  // namespace atl::agent
